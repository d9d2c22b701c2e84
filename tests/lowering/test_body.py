"""The graph of a library function's body."""

import pytest

from simplace.errors import TargetError
from tests.lowering.worlds import call_program, function, prepared, same


def test_outputs_are_found_by_argument_and_position():
    g = function("g(x: float) -> y: float, z: float", "", {"y": "x", "z": "x"}, attrs={"_noinline": True})
    f = function(
        "f(x: float) -> a: float, b: int32",
        """
        s = Split(i:output:0, x) {num_split=2}
        i = Const(^x) {dtype=int32}
        k = g(s:output:1)
        u = Unique(k:z:0) {out_idx=int32}
        p = Pack(s:output) {N=2}
        """,
        {"a": "p:output:0", "b": "u:idx:0"},
    )
    assert same(
        prepared(call_program(f, g)),
        """
        x = _Arg() !CPU:0
        i = Const(^x)
        s = Split(i, x)
        k = g(s:1)
        u = Unique(k:1)
        p = Pack(s, s:1)
        a_RetVal = _Retval(p)
        b_RetVal = _Retval(u:1)
        """,
    )


def test_ints_on_device_for_wrappers_of_eager_ops():
    f = function("f(i: int32) -> o: int32", "", {"o": "i"}, attrs={"experimental_ints_on_device": True})
    assert same(
        prepared(call_program(f)),
        """
        i = _DeviceArg() !CPU:0
        o_RetVal = _DeviceRetval(i) !CPU:0
        """,
    )


def test_list_argument_has_a_node_per_element():
    f = function(
        "f(xs_0: float, xs_1: float) -> ys_0: float, ys_1: float",
        "n = IdentityN(xs:1, xs:0) {T=(float, float)}",
        {"ys": "n:output"},
    )
    assert same(
        prepared(call_program(f)),
        """
        xs_0 = _Arg() !CPU:0
        xs_1 = _Arg() !CPU:0
        n = IdentityN(xs_1, xs_0)
        ys_RetVal_0 = _Retval(n)
        ys_RetVal_1 = _Retval(n:1)
        """,
    )


@pytest.mark.parametrize(
    ("text", "returned", "message"),
    [
        ("r = Relu(z)", "r:activations:0", "node 'r' of function 'f' refers to 'z', which the function does not have"),
        (
            "r = Relu(x, ^z)",
            "r:activations:0",
            "node 'r' of function 'f' refers to '^z', which the function does not have",
        ),
        ("", "r:y:0", "result 'y' of function 'f' refers to 'r:y:0', which the function does not have"),
        ("r = AddV2(x)", "r:z:0", "node 'r' of function 'f' has 1 inputs, but its op AddV2 takes 2"),
        ("x = NoOp()", "x", "function 'f' has two nodes or arguments called 'x'"),
        ("r = Cast(x)", "r:y:0", "node 'r': a node of op Cast lacks the attribute 'SrcT', of type type"),
        (
            "r = Relu(x) {T=fn('g')}",
            "r:activations:0",
            "node 'r': a node of op Relu has FuncRef(name='g', attrs=mappingproxy({})) as the attribute 'T', "
            "of type type",
        ),
        (
            "r = Relu(x) {T='A'}",
            "r:activations:0",
            "node 'r' of function 'f' refers to the attribute 'A' of the call, which the call does not have",
        ),
    ],
)
def test_body_that_does_not_hold_together(text, returned, message):
    with pytest.raises(TargetError) as error:
        prepared(call_program(function("f(x: float) -> y: float", text, {"y": returned})))
    assert str(error.value) == message
