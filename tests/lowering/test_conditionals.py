"""If and Case turned into Switch and Merge."""

# ruff: noqa: E501 (a node a line, however long)

import pytest

from simplace.program.status import Refused
from tests.lowering.worlds import call_program, function, prepared, same, session_program

H = function("h(x: float) -> y: float", "r = Relu(x)", {"y": "r:activations:0"})


def test_if_in_a_function():
    same_again = function("k(x: float) -> y: float", "", {"y": "x"})
    f = function(
        "f(p: bool, x: float) -> y: float",
        """
        a = NoOp()
        s = Relu(x) @/device:CPU:0
        c = If(p, s:activations:0, ^a) @/device:GPU:1 {Tcond=bool, Tin=(float,), Tout=(float,), then_branch=fn('h'), \
            else_branch=fn('k'), _lower_using_switch_merge=True, _class=(b'loc:@s',)}
        d = NoOp(^c)
        """,
        {"y": "c:output:0"},
    )
    assert same(
        prepared(call_program(f, H, same_again)),
        """
        p = _Arg() !CPU:0
        x = _Arg() !CPU:0
        a = NoOp()
        s = Relu(x) @/device:CPU:0
        d = NoOp(^c/branch_executed/_7)
        y_RetVal = _Retval(c/output/_6) [loc:@s]
        c/switch_pred/_2 = Switch(p, p, ^a) @/device:GPU:1 [loc:@s]
        c/pivot_f/_3 = Identity(c/switch_pred/_2) @/device:GPU:1 [loc:@s]
        c/pivot_t/_4 = Identity(c/switch_pred/_2:1) @/device:GPU:1 [loc:@s]
        c/s/_5 = Switch(s, p) @/device:CPU:0 [loc:@s]
        c/output/_6 = Merge(Func/c/then/_0/output/_10, Func/c/else/_1/output/_14) @/device:GPU:1 [loc:@s]
        c/branch_executed/_7 = Merge(c/pivot_t/_4, c/pivot_f/_3, ^Func/c/then/_0/output_control_node/_11, ^Func/c/else/_1/output_control_node/_15) @/device:GPU:1 [loc:@s]
        c = NoOp(^c/branch_executed/_7) @/device:GPU:1
        Func/c/then/_0/input_control_node/_8 = NoOp(^c/pivot_t/_4) @/device:GPU:1
        Func/c/then/_0/input/_9 = Identity(c/s/_5:1, ^Func/c/then/_0/input_control_node/_8) @/device:CPU:0 [loc:@c/s/_5]
        c/then/_0/r = Relu(Func/c/then/_0/input/_9) @/device:GPU:1
        Func/c/then/_0/output/_10 = Identity(c/then/_0/r) [loc:@c/then/_0/r]
        Func/c/then/_0/output_control_node/_11 = NoOp(^Func/c/then/_0/input_control_node/_8) @/device:GPU:1
        c/then/_0 = NoOp(^Func/c/then/_0/output_control_node/_11) @/device:GPU:1
        Func/c/else/_1/input_control_node/_12 = NoOp(^c/pivot_f/_3) @/device:GPU:1
        Func/c/else/_1/input/_13 = Identity(c/s/_5, ^Func/c/else/_1/input_control_node/_12) @/device:CPU:0 [loc:@c/s/_5]
        Func/c/else/_1/output/_14 = Identity(Func/c/else/_1/input/_13) [loc:@Func/c/else/_1/input/_13]
        Func/c/else/_1/output_control_node/_15 = NoOp(^Func/c/else/_1/input_control_node/_12) @/device:GPU:1
        c/else/_1 = NoOp(^Func/c/else/_1/output_control_node/_15) @/device:GPU:1
        """,
    )


def test_if_in_a_session_stays_fetchable():
    assert same(
        prepared(
            session_program(
                """
            p = Const() {dtype=bool}
            x = Const() {dtype=float}
            c = If(p, x) {Tcond=bool, Tin=(float,), Tout=(float,), then_branch=fn('h'), else_branch=fn('h'), \
                _lower_using_switch_merge=True}
            d = Neg(c)
            """,
                H,
            )
        ),
        """
        p = Const()
        x = Const()
        d = Neg(c/output/_6)
        c/switch_pred/_2 = Switch(p, p)
        c/pivot_f/_3 = Identity(c/switch_pred/_2)
        c/pivot_t/_4 = Identity(c/switch_pred/_2:1)
        c/x/_5 = Switch(x, p) [loc:@x]
        c/output/_6 = Merge(Func/c/then/_0/output/_10, Func/c/else/_1/output/_14)
        c/branch_executed/_7 = Merge(c/pivot_t/_4, c/pivot_f/_3, ^Func/c/then/_0/output_control_node/_11, ^Func/c/else/_1/output_control_node/_15)
        c = IdentityN(c/output/_6, ^c/branch_executed/_7)
        Func/c/then/_0/input_control_node/_8 = NoOp(^c/pivot_t/_4)
        Func/c/then/_0/input/_9 = Identity(c/x/_5:1, ^Func/c/then/_0/input_control_node/_8) [loc:@c/x/_5]
        c/then/_0/r = Relu(Func/c/then/_0/input/_9)
        Func/c/then/_0/output/_10 = Identity(c/then/_0/r) [loc:@c/then/_0/r]
        Func/c/then/_0/output_control_node/_11 = NoOp(^Func/c/then/_0/input_control_node/_8)
        c/then/_0 = IdentityN(Func/c/then/_0/output/_10, ^Func/c/then/_0/output_control_node/_11)
        Func/c/else/_1/input_control_node/_12 = NoOp(^c/pivot_f/_3)
        Func/c/else/_1/input/_13 = Identity(c/x/_5, ^Func/c/else/_1/input_control_node/_12) [loc:@c/x/_5]
        c/else/_1/r = Relu(Func/c/else/_1/input/_13)
        Func/c/else/_1/output/_14 = Identity(c/else/_1/r) [loc:@c/else/_1/r]
        Func/c/else/_1/output_control_node/_15 = NoOp(^Func/c/else/_1/input_control_node/_12)
        c/else/_1 = IdentityN(Func/c/else/_1/output/_14, ^Func/c/else/_1/output_control_node/_15)
        """,
    )


def test_if_without_the_attribute_stays():
    assert same(
        prepared(
            session_program(
                """
            p = Const() {dtype=bool}
            c = If(p, p) {Tcond=bool, Tin=(float,), Tout=(float,), then_branch=fn('h'), else_branch=fn('h')}
            """,
                H,
            )
        ),
        """
        p = Const()
        c = If(p, p)
        """,
    )


def test_case_colocates_its_switches_with_nothing():
    f = function(
        "f(i: int32, x: float) -> y: float",
        """
        c = Case(i, x) @/device:GPU:1 {Tin=(float,), Tout=(float,), branches=(fn('h'), fn('h')), \
            _lower_using_switch_merge=True, _class=(b'loc:@x',)}
        """,
        {"y": "c:output:0"},
    )
    assert same(
        prepared(call_program(f, H)),
        """
        i = _Arg() !CPU:0
        x = _Arg() !CPU:0
        y_RetVal = _Retval(c/merge/_6) [loc:@x]
        c/branch_index/_2 = _SwitchN(i, i) @/device:GPU:1
        c/pivot_0/_3 = Identity(c/branch_index/_2) @/device:GPU:1
        c/pivot_1/_4 = Identity(c/branch_index/_2:1) @/device:GPU:1
        c/x/_5 = _SwitchN(x, i) [x]
        c/merge/_6 = Merge(Func/c/branch0/_0/output/_10, Func/c/branch1/_1/output/_14) @/device:GPU:1
        c/branch_executed/_7 = Merge(c/pivot_0/_3, c/pivot_1/_4, ^Func/c/branch0/_0/output_control_node/_11, ^Func/c/branch1/_1/output_control_node/_15) @/device:GPU:1
        c = NoOp(^c/branch_executed/_7) @/device:GPU:1
        Func/c/branch0/_0/input_control_node/_8 = NoOp(^c/pivot_0/_3) @/device:GPU:1
        Func/c/branch0/_0/input/_9 = Identity(c/x/_5, ^Func/c/branch0/_0/input_control_node/_8) [loc:@c/x/_5]
        c/branch0/_0/r = Relu(Func/c/branch0/_0/input/_9) @/device:GPU:1
        Func/c/branch0/_0/output/_10 = Identity(c/branch0/_0/r) [loc:@c/branch0/_0/r]
        Func/c/branch0/_0/output_control_node/_11 = NoOp(^Func/c/branch0/_0/input_control_node/_8) @/device:GPU:1
        c/branch0/_0 = NoOp(^Func/c/branch0/_0/output_control_node/_11) @/device:GPU:1
        Func/c/branch1/_1/input_control_node/_12 = NoOp(^c/pivot_1/_4) @/device:GPU:1
        Func/c/branch1/_1/input/_13 = Identity(c/x/_5:1, ^Func/c/branch1/_1/input_control_node/_12) [loc:@c/x/_5]
        c/branch1/_1/r = Relu(Func/c/branch1/_1/input/_13) @/device:GPU:1
        Func/c/branch1/_1/output/_14 = Identity(c/branch1/_1/r) [loc:@c/branch1/_1/r]
        Func/c/branch1/_1/output_control_node/_15 = NoOp(^Func/c/branch1/_1/input_control_node/_12) @/device:GPU:1
        c/branch1/_1 = NoOp(^Func/c/branch1/_1/output_control_node/_15) @/device:GPU:1
        """,
    )


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (
            "c = If(x, x) {Tcond=float, Tin=(float,), Tout=(float,), then_branch=fn('h'), else_branch=fn('h'), "
            "_lower_using_switch_merge=True}",
            "Input 'pred' passed float expected bool while building NodeDef 'c/switch_pred/_2' using Op<name=Switch; "
            "signature=data:T, pred:bool -> output_false:T, output_true:T; attr=T:type>",
        ),
        (
            "c = While(x) {T=(float,), cond=fn('h'), body=fn('h'), parallel_iterations=10, "
            "_lower_using_switch_merge=True}",
            "Input 'input' passed float expected bool while building NodeDef 'c/LoopCond/_4' using Op<name=LoopCond; "
            "signature=input:bool -> output:bool>",
        ),
    ],
)
def test_a_number_that_is_asked_for_is_refused(node, message):
    output = "c:output:0"
    with pytest.raises(Refused) as refused:
        prepared(call_program(function("f(x: float) -> y: float", node, {"y": output}), H))
    assert str(refused.value) == message
