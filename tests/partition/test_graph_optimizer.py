"""What TensorFlow takes out of a subgraph before it runs: constants are folded, what is computed twice is merged."""

from simplace.partition.graph_optimizer import optimize_subgraphs
from simplace.partition.graph_partition import PartitionedGraph, partition_graph
from tests.executor.worlds import placed, run

FOLDED = """
    c = Const() @c {dtype=float, _output_shapes=(dims(2),)}
    d = Neg(c) @c {_output_shapes=(dims(2),)}
    e = Exp(d) @c {_output_shapes=(dims(2),)}
    x = Placeholder() @c {dtype=float, shape=dims(2)}
    y = AddV2(x, e) @c {_output_shapes=(dims(2),)}
    r = _Retval(y) @c {T=float, index=0}
"""
ON_GPU = """
    c = Const() @g0 {dtype=float, _output_shapes=(dims(2),)}
    d = Neg(c) @g0 {T=float, _output_shapes=(dims(2),)}
    s = Shape(d) @g0 {T=float, out_type=int32, _output_shapes=(dims(1),)}
    l = Shape(d) @g0 {T=float, out_type=int64, _output_shapes=(dims(1),)}
    x = Placeholder() @g0 {dtype=float, shape=dims(2)}
    y = AddV2(x, d) @g0 {T=float, _output_shapes=(dims(2),)}
    z = Reshape(y, s) @g0 {T=float, Tshape=int32, _output_shapes=(dims(2),)}
    w = Reshape(z, l) @g0 {T=float, Tshape=int64, _output_shapes=(dims(2),)}
    r = _Retval(w) @c {T=float, index=0}
"""
AWAITED = FOLDED.replace("x = ", "b = Const(^e) @c {dtype=float, _output_shapes=(dims(2),)}\n    x = ").replace(
    "r = ", "z = AddV2(y, b) @c {_output_shapes=(dims(2),)}\n    r = ").replace("_Retval(y)", "_Retval(z)")  # fmt: skip
LISTS = """
    s = Const() @c {dtype=int32, _output_shapes=(dims(0),)}
    n = Const() @c {dtype=int32, _output_shapes=(dims(),)}
    l = EmptyTensorList(s, n) @c {element_dtype=float, shape_type=int32, _output_shapes=(dims(),)}
    x = Placeholder() @c {dtype=float, shape=dims()}
    p = TensorListPushBack(l, x) @c {element_dtype=float, _output_shapes=(dims(),)}
    r = _Retval(p) @c {T=variant, index=0}
"""
LOOP = """
    x = Placeholder() @c {dtype=float, shape=dims(2)}
    n = Enter(x) @c {T=float, frame_name=b"w", _output_shapes=(dims(2),)}
    m = Merge(n, t) @c {T=float, N=2, _output_shapes=(dims(2),dims())}
    p = Placeholder() @c {dtype=bool, shape=dims()}
    q = Enter(p) @c {T=bool, frame_name=b"w", is_constant=True, _output_shapes=(dims(),)}
    l = LoopCond(q) @c {_output_shapes=(dims(),)}
    s = Switch(m, l) @c {T=float, _output_shapes=(dims(2),dims(2))}
    i = Identity(s:1) @c {T=float, _output_shapes=(dims(2),)}
    c = Const(^i) @c {dtype=float, _output_shapes=(dims(2),)}
    d = Neg(c) @c {T=float, _output_shapes=(dims(2),)}
    e = Exp(d) @c {T=float, _output_shapes=(dims(2),)}
    a = AddV2(i, e) @c {T=float, _output_shapes=(dims(2),)}
    b = AddV2(i, e) @c {T=float, _output_shapes=(dims(2),)}
    y = Mul(a, b) @c {T=float, _output_shapes=(dims(2),)}
    t = NextIteration(y) @c {T=float, _output_shapes=(dims(2),)}
    o = Exit(s) @c {T=float, _output_shapes=(dims(2),)}
    r = _Retval(o) @c {T=float, index=0}
"""
TWICE = """
    x = Placeholder() @c {dtype=float, shape=shape}
    a = Neg(x) @c
    b = Neg(x) @c
    s = RandomUniform(c) @c {T=int32, dtype=float}
    t = RandomUniform(c) @c {T=int32, dtype=float}
    c = Const() @c {dtype=int32}
    u = AddV2(s, t) @c
    y = AddV2(a, b) @c
    r = _Retval(y) @c {T=float, index=0}
    q = _Retval(u) @c {T=float, index=1}
"""
NOTHING_TAKEN = """
    n = OptionalNone() @c {_output_shapes=(dims(),)}
    h = OptionalHasValue(n) @c {_output_shapes=(dims(),)}
    m = EmptyTensorMap() @c {_output_shapes=(dims(),)}
    s = TensorMapSize(m) @c {_output_shapes=(dims(),)}
    x = Placeholder() @c {dtype=float, shape=dims()}
    f = FakeParam() @c {dtype=float, shape=dims(), _output_shapes=(dims(),)}
    g = Neg(x) @c {_output_shapes=(dims(),)}
    y = Neg(f) @c {_output_shapes=(dims(),)}
    o = _Retval(h) @c {T=bool, index=0}
    p = _Retval(s) @c {T=int32, index=1}
    q = _Retval(g) @c {T=float, index=2}
    r = _Retval(y) @c {T=float, index=3}
"""
TWO_FOLDED = """
    c = Const() @c {dtype=int32, value=number(5), _output_shapes=(dims(),)}
    d = Const() @c {dtype=int32, value=number(5), _output_shapes=(dims(),)}
    z = Neg(c) @c {T=int32, _output_shapes=(dims(),)}
    e = Neg(d) @c {T=int32, _output_shapes=(dims(),)}
    x = Placeholder() @c {dtype=int32, shape=dims()}
    a = Mul(x, z) @c {T=int32, _output_shapes=(dims(),)}
    b = Mul(x, e) @c {T=int32, _output_shapes=(dims(),)}
    y = AddV2(a, b) @c {T=int32, _output_shapes=(dims(),)}
    r = _Retval(y) @c {T=int32, index=0}
"""


def optimize(text: str) -> PartitionedGraph:
    return optimize_subgraphs(partition_graph(placed(text).placed))


def ops(graph: PartitionedGraph) -> dict[str, str]:
    return {node.name: node.op for node in graph.nodes if node.role == "op"}


def inputs(graph: PartitionedGraph, name: str) -> list[str]:
    (number,) = (i for i, node in enumerate(graph.nodes) if node.name == name)
    return [graph.nodes[edge.src].name for edge in graph.ins[number]]


def test_a_constant_stands_for_what_depends_on_constants() -> None:
    found = optimize(FOLDED)
    assert ops(found) == {"e": "Const", "x": "Placeholder", "y": "AddV2", "r": "_Retval"}
    assert inputs(found, "e") == ["_SOURCE"]


def test_on_a_gpu_a_constant_must_lie_where_the_tensor_did() -> None:
    found = ops(optimize(ON_GPU))
    assert found["d"] == found["s"] == "Const"  # a Const of int32 is in host memory, too
    assert found["l"] == "Shape"  # one of int64 would be in the GPU's


def test_on_a_gpu_what_is_folded_needs_no_copy_from_host_memory() -> None:
    cast = """
        c = Const() @g0 {dtype=int32, _output_shapes=(dims(),)}
        d = Cast(c) @g0 {SrcT=int32, DstT=float, _output_shapes=(dims(),)}
        x = Placeholder() @g0 {dtype=float, shape=dims(2)}
        y = Mul(x, d) @g0 {T=float, _output_shapes=(dims(2),)}
        r = _Retval(y) @c {T=float, index=0}
    """
    plain, found = partition_graph(placed(cast).placed), optimize(cast)
    assert [copy.source_memory for copy in plain.copies] == ["host", "device"]
    assert ops(found) == {"d": "Const", "x": "Placeholder", "y": "Mul", "r": "_Retval"}
    assert [found.copies[node.copy].tensor for node in found.nodes if node.role == "send"] == ["y:0"]
    both = optimize(cast.replace("r = ", "z = AddV2(q, c) @g0 {T=int32}\n        q = Placeholder() @g0 {dtype=int32}\n"
                                 "        s = _Retval(z) @g0 {T=int32, index=1}\n        r = "))  # fmt: skip
    assert ops(both)["c"] == ops(both)["d"] == "Const"


def test_what_is_folded_runs_before_the_step_and_stays_in_memory() -> None:
    plain, done = run(FOLDED, optimizes=False), run(FOLDED, optimizes=True)
    names = [done.estimated.graph.nodes[kept.node].name for kept in done.trace.resident]
    assert names == ["e"]
    assert done.trace.makespan < plain.trace.makespan


def test_what_others_wait_for_runs_beside_its_constant() -> None:
    found = optimize(AWAITED)
    assert ops(found)["e"] == "Exp"
    assert inputs(found, "y") == ["x", "e/_0__cf__0"]
    assert inputs(found, "b") == ["e"]


def test_an_empty_list_is_folded() -> None:
    assert ops(optimize(LISTS))["l"] == "Const"


def test_what_takes_nothing_is_folded_but_for_what_stands_for_a_value_to_come() -> None:
    found = ops(optimize(NOTHING_TAKEN))
    assert found["h"] == found["s"] == "Const"
    assert {"n", "m"}.isdisjoint(found)
    assert {"x": "Placeholder", "f": "FakeParam", "g": "Neg", "y": "Neg"}.items() <= found.items()


def test_a_constant_that_waits_for_a_noop_waits_for_what_that_waits_for() -> None:
    found = optimize(FOLDED.replace("c = Const()", "k = NoOp(^x) @c\n    c = Const(^k)"))
    assert inputs(found, "e") == ["x"]
    assert {"k", "c", "d"}.isdisjoint(ops(found))


def test_in_the_body_of_a_loop_a_constant_waits_for_what_its_node_was_made_of() -> None:
    found = optimize(LOOP)
    assert ops(found)["e"] == "Const"
    assert {"c", "d"}.isdisjoint(ops(found))
    assert inputs(found, "e") == ["i"]


def test_equal_nodes_of_a_loop_are_one() -> None:
    found = optimize(LOOP)
    assert inputs(found, "y") == ["a", "a"]
    assert "b" not in ops(found)


def test_a_large_constant_is_made_in_each_step() -> None:
    large = FOLDED.replace("dims(2)", "dims(1024, 1024, 3)")
    assert set(ops(optimize(large))) == {"c", "d", "e", "x", "y", "r"}


def test_what_constants_lead_to_without_telling_its_size_is_folded() -> None:
    found = optimize(FOLDED.replace("e = Exp(d) @c {_output_shapes=(dims(2),)}", "e = Exp(d) @c"))
    assert ops(found) == {"e": "Const", "x": "Placeholder", "y": "AddV2", "r": "_Retval"}


def test_what_may_be_large_with_another_batch_is_computed_in_each_step() -> None:
    graph = partition_graph(placed(FOLDED).placed)
    assert ops(optimize_subgraphs(graph, unfolded=3))["e"] == "Const"
    assert set(ops(optimize_subgraphs(graph, unfolded=2))) == {"c", "d", "e", "x", "y", "r"}


def test_what_is_left_out_says_why() -> None:
    unused = "n = Neg(x) @c\n    m = Exp(n) @c\n    r = "
    found = run(
        FOLDED.replace("r = ", unused)
        + "b = AddV2(x, e) @c {_output_shapes=(dims(2),)}\n    q = _Retval(b) @c {T=float, index=1}",
        optimizes=True,
    )
    names = found.placement.graph.names
    assert {names[node]: why for node, why in found.left_out.items()} == {
        "c": "folded", "d": "folded", "e": "folded", "b": "merged", "n": "unused", "m": "unused",
    }  # fmt: skip


def test_inputs_of_a_commutative_op_are_in_any_order() -> None:
    world = TWICE.replace("y = AddV2(a, b)", "m = Mul(a, x) @c\n    n = Mul(x, b) @c\n    y = AddV2(m, n)")
    assert inputs(optimize(world), "y") == ["m", "m"]
    assert inputs(optimize(world.replace("Mul", "Sub")), "y") == ["m", "n"]


def test_a_node_waits_for_all_that_its_candidate_waits_for_or_is_not_merged() -> None:
    """There is one candidate: the first Neg, which waits for nothing."""
    found = optimize(TWICE.replace("b = Neg(x)", "b = Neg(x, ^c)").replace("y = AddV2(a, b)", """d = Neg(x, ^c) @c
    e = AddV2(b, d) @c
    y = AddV2(a, e)"""))  # fmt: skip
    assert inputs(found, "e") == ["b", "d"]


def test_what_was_folded_leaves_others_to_be_merged() -> None:
    """While k is there it is the candidate for all equal constants, and waits for nothing."""
    world = """
        k = Const() @c {dtype=int32, value=number(5), _output_shapes=(dims(),)}
        f = Neg(k) @c {T=int32, _output_shapes=(dims(),)}
        x = Placeholder() @c {dtype=int32, shape=dims()}
        c = Const(^x) @c {dtype=int32, value=number(5), _output_shapes=(dims(),)}
        d = Const(^x) @c {dtype=int32, value=number(5), _output_shapes=(dims(),)}
        a = Mul(x, c) @c {T=int32, _output_shapes=(dims(),)}
        b = Mul(x, d) @c {T=int32, _output_shapes=(dims(),)}
        y = AddN(a, b, f) @c {T=int32, N=3, _output_shapes=(dims(),)}
        r = _Retval(y) @c {T=int32, index=0}
    """
    assert inputs(optimize(world), "y") == ["a", "a", "f"]
    assert inputs(optimize(world.replace("f = Neg(k)", "f = Mul(x, k)")), "y") == ["a", "b", "f"]


def test_folded_constants_come_last_by_their_names() -> None:
    found = optimize(TWO_FOLDED.replace("Neg(d)", "Abs(d)"))
    assert list(ops(found)) == ["x", "a", "b", "y", "r", "e", "z"]


def test_which_of_equal_nodes_is_left_depends_on_what_was_folded_for_them() -> None:
    """Of two that take what is folded alike, it is the one that takes the constant whose name comes first."""
    assert inputs(optimize(TWO_FOLDED), "y") == ["b", "b"]
    assert inputs(optimize(TWO_FOLDED.replace("z", "d1")), "y") == ["a", "a"]


def test_constants_of_unknown_values_are_not_equal() -> None:
    """Both are folded, in the first round; in the second nothing but their names tells them apart."""
    world = """
        c = Const() @c {dtype=float, value=number(1), _output_shapes=(dims(),)}
        d = Const() @c {dtype=float, value=number(2), _output_shapes=(dims(),)}
        e = Exp(c) @c {_output_shapes=(dims(),)}
        f = Exp(d) @c {_output_shapes=(dims(),)}
        x = Placeholder() @c {dtype=float, shape=dims()}
        a = Mul(x, e) @c {_output_shapes=(dims(),)}
        b = Mul(x, f) @c {_output_shapes=(dims(),)}
        y = AddV2(a, b) @c {_output_shapes=(dims(),)}
        r = _Retval(y) @c {T=float, index=0}
    """
    found = optimize(world)
    assert inputs(found, "y") == ["a", "b"]
    assert {"e": "Const", "f": "Const"}.items() <= ops(found).items()


def test_a_key_counter_is_never_folded() -> None:
    world = """
        c = Const() @c {dtype=int32, _output_shapes=(dims(2),)}
        k = StatelessRandomGetKeyCounter(c) @c {Tseed=int32, _output_shapes=(dims(1), dims(2))}
        x = Placeholder() @c {dtype=uint64, shape=dims(1)}
        y = Equal(k, x) @c {T=uint64, _output_shapes=(dims(1),)}
        r = _Retval(y) @c {T=bool, index=0}
    """
    assert ops(optimize(world))["k"] == "StatelessRandomGetKeyCounter"


def test_a_copy_of_what_was_merged_carries_the_tensor_of_what_it_was_merged_with() -> None:
    world = """
        x = Placeholder() @c {dtype=float, shape=dims(3)}
        a = Neg(x) @c {T=float, _output_shapes=(dims(3),)}
        b = Neg(x) @c {T=float, _output_shapes=(dims(3),)}
        y = AddV2(a, a) @g0 {T=float, _output_shapes=(dims(3),)}
        z = AddV2(b, b) @g1 {T=float, _output_shapes=(dims(3),)}
        r = _Retval(y) @g0 {T=float, index=0}
        q = _Retval(z) @g1 {T=float, index=1}
    """
    found = run(world, optimizes=True)
    sent = [
        i for i, node in enumerate(found.estimated.graph.nodes) if node.role == "send" and node.device.endswith("CPU:0")
    ]
    assert [tensor.size for i in sent if (tensor := found.estimated.output(i, 0))] == [12, 12]


def test_equal_nodes_are_one_but_for_those_with_an_effect() -> None:
    found = optimize(TWICE)
    assert inputs(found, "y") == ["a", "a"]
    assert inputs(found, "u") == ["s", "t"]
    assert "b" not in ops(found)
