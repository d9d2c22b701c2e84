"""ParallelConcat replaced by a buffer."""

from tests.lowering.worlds import prepared, same, session_program


def test_one_update_per_input():
    assert same(
        prepared(
            session_program(
                """
            x = Const() {dtype=float}
            a = NoOp()
            n = ParallelConcat(x, x, ^a) @/device:GPU:1 {N=2, shape=shape}
            m = Neg(n, ^n)
            """
            )
        ),
        """
        x = Const()
        a = NoOp()
        m = Neg(n, ^n)
        n/Internal/_0 = _ParallelConcatStart(^a) @/device:GPU:1
        n/Internal/_1 = _ParallelConcatUpdate(n/Internal/_0, x) @/device:GPU:1
        n/Internal/_2 = _ParallelConcatUpdate(n/Internal/_0, x) @/device:GPU:1
        n = Identity(n/Internal/_0, ^n/Internal/_1, ^n/Internal/_2) @/device:GPU:1
        """,
    )
