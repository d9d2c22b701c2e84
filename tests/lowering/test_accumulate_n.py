"""AccumulateNV2 replaced before anything else."""

import pytest

from simplace.program.status import Refused
from tests.lowering.worlds import prepared, same, session_program


def test_temporary_variable_outside_loops():
    assert same(
        prepared(
            session_program(
                """
            x = Const() {dtype=float}
            a = NoOp()
            n = AccumulateNV2(x, x, ^a) @/device:GPU:1 {N=2, _class=(b'loc:@x',)}
            m = Neg(n, ^n)
            """
            )
        ),
        """
        x = Const()
        a = NoOp()
        m = Neg(n, ^n)
        n/Internal/_0 = TemporaryVariable() @/device:GPU:1
        n/Internal/_1 = Shape(x) @/device:GPU:1
        n/Internal/_2 = Const() @/device:GPU:1
        n/Internal/_3 = Fill(n/Internal/_1, n/Internal/_2) @/device:GPU:1
        n/Internal/_4 = Assign(n/Internal/_0, n/Internal/_3, ^a) @/device:GPU:1
        n/Internal/_5 = AssignAdd(n/Internal/_4, x) @/device:GPU:1
        n/Internal/_6 = AssignAdd(n/Internal/_4, x) @/device:GPU:1
        n = DestroyTemporaryVariable(n/Internal/_4, ^n/Internal/_5, ^n/Internal/_6) @/device:GPU:1
        """,
    )


def test_add_n_inside_loops():
    assert same(
        prepared(
            session_program(
                """
            x = Const() {dtype=float}
            e = Enter(x) {frame_name=b'f', parallel_iterations=10}
            n = AccumulateNV2(e, e) @/device:GPU:1 {N=2, _class=b'loc:@x'}
            m = Exit(n)
            """
            )
        ),
        """
        x = Const()
        e = Enter(x)
        m = Exit(n)
        n = AddN(e, e) @/device:GPU:1 b'loc:@x'
        """,
    )


def test_temporary_variable_in_a_sequential_loop():
    assert same(
        prepared(
            session_program(
                """
            x = Const() {dtype=float}
            e = Enter(x) {frame_name=b'f', parallel_iterations=1}
            n = AccumulateNV2(e) {N=1}
            m = Exit(n)
            """
            )
        ),
        """
        x = Const()
        e = Enter(x)
        m = Exit(n)
        n/Internal/_0 = TemporaryVariable()
        n/Internal/_1 = Shape(e)
        n/Internal/_2 = Const()
        n/Internal/_3 = Fill(n/Internal/_1, n/Internal/_2)
        n/Internal/_4 = Assign(n/Internal/_0, n/Internal/_3)
        n/Internal/_5 = AssignAdd(n/Internal/_4, e)
        n = DestroyTemporaryVariable(n/Internal/_4, ^n/Internal/_5)
        """,
    )


@pytest.mark.parametrize(
    "nodes",
    [
        "e = Enter(x) {frame_name=b'f'}; f = Enter(x) {frame_name=b'f'}; both = Add(e, f); n = AccumulateNV2(x) {N=1}",
        "e = Enter(x) {frame_name=b'f'}; gone = Exit(e); both = Add(x, gone); n = AccumulateNV2(x) {N=1}",
        "e = Enter(x) {frame_name=b'f'}; mixed = Add(e, x)",
    ],
    ids=["one frame by its name", "an exit leaves", "nothing asks"],
)
def test_frames_that_are_not_refused(nodes: str):
    prepared(session_program("x = Const() {dtype=float}\n" + nodes.replace("; ", "\n")))


def test_inputs_from_different_frames_are_refused_where_the_pass_asks():
    with pytest.raises(Refused) as refused:
        prepared(
            session_program(
                """
            x = Const() {dtype=float}
            e = Enter(x) {frame_name=b'f'}
            mixed = Add(e, x)
            n = AccumulateNV2(x) {N=1}
            """
            )
        )
    assert refused.value.refusal.code == "INVALID_ARGUMENT"
    assert refused.value.refusal.message == (
        "{{node mixed}} has inputs from different frames. The input {{node e}} is in frame 'f'. "
        "The input {{node x}} is in frame ''."
    )
