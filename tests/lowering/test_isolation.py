"""Identities around calls that return resources."""

from tests.lowering.worlds import call_program, function, prepared, same


def test_inputs_used_outputs_unused_outputs():
    g = function(
        "g(x: resource, z: float) -> a: resource, b: resource, c: float",
        "",
        {"a": "x", "b": "x", "c": "z"},
        attrs={"_noinline": True},
    )
    f = function(
        "f(x: resource, z: float) -> y: float",
        """
        k = PartitionedCall(x, z) @/device:GPU:1 {f=fn('g'), Tin=(resource, float), Tout=(resource, resource, float)}
        l = ReadVariableOp(k:output:0) {dtype=float}
        k_l = ReadVariableOp(k:output:0) {dtype=float}
        """,
        {"y": "k:output:2"},
    )
    assert same(
        prepared(call_program(f, g)),
        """
        x = _Arg() !CPU:0
        z = _Arg() !CPU:0
        k = PartitionedCall(x_k, z_k) @/device:GPU:1
        l = ReadVariableOp(k_l_0)
        k_l = ReadVariableOp(k_k_l)
        y_RetVal = _Retval(k_y_RetVal) !GPU:1
        x_k = Identity(x)
        z_k = Identity(z)
        k_l_0 = Identity(k)
        k_k_l = Identity(k)
        k_y_RetVal = Identity(k:2)
        k_0 = Identity(k:1)
        """,
    )
