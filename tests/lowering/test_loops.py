"""While turned into Enter, Merge, Switch, Exit and NextIteration."""

# ruff: noqa: E501 (a node a line, however long)

from tests.lowering.worlds import call_program, function, prepared, same


def test_while_with_a_carried_resource():
    cond = function("cond(x: float, v: resource) -> y: bool", "t = Const() {dtype=bool}", {"y": "t:output:0"})
    body = function("body(x: float, v: resource) -> y: float, w: resource", "n = Neg(x)", {"y": "n:y:0", "w": "v"})
    f = function(
        "f(x: float, v: resource) -> y: float",
        """
        a = NoOp()
        w = While(x, v, ^a) @/device:GPU:1 {T=(float, resource), cond=fn('cond'), body=fn('body'), \
            parallel_iterations=10, _lower_using_switch_merge=True}
        r = ReadVariableOp(w:output:1, ^w) {dtype=float}
        """,
        {"y": "w:output:0"},
    )
    assert same(
        prepared(call_program(f, cond, body)),
        """
        x = _Arg() !CPU:0
        v = _Arg() !CPU:0
        a = NoOp()
        r = ReadVariableOp(v, ^w/LoopExecuted/_10)
        y_RetVal = _Retval(w/exit/_9) !GPU:1
        w/enter/_2 = Enter(x, ^w/LoopControlInputs/_4) !CPU:0
        w/enter/_3 = Enter(v, ^w/LoopControlInputs/_4) !CPU:0
        w/LoopControlInputs/_4 = NoOp(^a) @/device:GPU:1
        w/merge/_5 = Merge(w/enter/_2, w/next_iteration/_11) !CPU:0
        w/LoopCond/_6 = LoopCond(Func/w/cond/_0/output/_15) @/device:GPU:1
        w/x_switch/_7 = Switch(w/merge/_5, w/LoopCond/_6) !CPU:0
        w/loop_body_control/_8 = Identity(w/x_switch/_7:1) @/device:GPU:1
        w/exit/_9 = Exit(w/x_switch/_7) !CPU:0
        w/LoopExecuted/_10 = NoOp(^w/exit/_9) @/device:GPU:1
        w = NoOp(^w/LoopExecuted/_10) @/device:GPU:1
        w/next_iteration/_11 = NextIteration(Func/w/body/_1/output/_20, ^Func/w/body/_1/output_control_node/_22) !CPU:0
        Func/w/cond/_0/input_control_node/_12 = NoOp(^w/merge/_5) @/device:GPU:1
        Func/w/cond/_0/input/_13 = Identity(w/merge/_5, ^Func/w/cond/_0/input_control_node/_12) @CPU:0 [loc:@w/merge/_5]
        Func/w/cond/_0/input/_14 = Identity(w/enter/_3, ^Func/w/cond/_0/input_control_node/_12) @CPU:0 [loc:@w/enter/_3]
        w/cond/_0/t = Const(^Func/w/cond/_0/input_control_node/_12) @/device:GPU:1
        Func/w/cond/_0/output/_15 = Identity(w/cond/_0/t) [loc:@w/cond/_0/t]
        Func/w/cond/_0/output_control_node/_16 = NoOp(^Func/w/cond/_0/input_control_node/_12) @/device:GPU:1
        w/cond/_0 = NoOp(^Func/w/cond/_0/output_control_node/_16) @/device:GPU:1
        Func/w/body/_1/input_control_node/_17 = NoOp(^w/loop_body_control/_8) @/device:GPU:1
        Func/w/body/_1/input/_18 = Identity(w/x_switch/_7:1, ^Func/w/body/_1/input_control_node/_17) @CPU:0 [loc:@w/x_switch/_7]
        Func/w/body/_1/input/_19 = Identity(w/enter/_3, ^Func/w/body/_1/input_control_node/_17) @CPU:0 [loc:@w/enter/_3]
        w/body/_1/n = Neg(Func/w/body/_1/input/_18) @/device:GPU:1
        Func/w/body/_1/output/_20 = Identity(w/body/_1/n) [loc:@w/body/_1/n]
        Func/w/body/_1/output/_21 = Identity(Func/w/body/_1/input/_19) [loc:@Func/w/body/_1/input/_19]
        Func/w/body/_1/output_control_node/_22 = NoOp(^Func/w/body/_1/input_control_node/_17) @/device:GPU:1
        w/body/_1 = NoOp(^Func/w/body/_1/output_control_node/_22) @/device:GPU:1
        """,
    )
