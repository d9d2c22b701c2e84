"""What the functions of a dataset become when TensorFlow rewrites its graph."""

from __future__ import annotations

from simplace.graph.node_def import GraphDef
from simplace.lowering.rewrite_utils import Rewriting, find_switched, rewrite_functions
from tests.lowering.worlds import FLOAT, TABLE, function


def test_each_result_gets_a_sink_beside_it() -> None:
    f = function(
        "f(x: float) -> y: float, z: float", "FakeSink0 = Neg(x)\nn = Neg(x)", {"y": "n:y:0", "z": "FakeSink0:y:0"}
    )
    (rewritten,) = rewrite_functions(GraphDef((), {"f": f}), Rewriting(1), TABLE).graph.library.values()
    assert rewritten.ret == f.ret
    assert [(node.name, node.op, node.inputs, node.attrs) for node in rewritten.nodes[2:]] == [
        ("FakeSink0/_3", "Identity", ("n:y:0",), {"T": FLOAT}),
        ("FakeSink1", "Identity", ("FakeSink0:y:0",), {"T": FLOAT}),
    ]


def test_each_rewriting_leaves_sinks_of_its_own() -> None:
    f = function("f(x: float) -> y: float", "n = Neg(x)", {"y": "n:y:0"})
    (rewritten,) = rewrite_functions(GraphDef((), {"f": f}), Rewriting(2), TABLE).graph.library.values()
    assert [(node.name, node.inputs) for node in rewritten.nodes[1:]] == [
        ("FakeSink0", ("n:y:0",)),
        ("FakeSink0/_3", ("n:y:0",)),
    ]


def test_the_last_rewriting_fuses() -> None:
    f = function(
        "f(d: variant) -> y: variant",
        """\
        zero = Const() {dtype=int64, value=number(0)}
        skip = SkipDataset(d, zero:output:0)
        """,
        {"y": "skip:handle:0"},
        attrs={"_tf_data_function": True},
    )
    (rewritten,) = rewrite_functions(GraphDef((), {"f": f}), Rewriting(2), TABLE).graph.library.values()
    assert rewritten.ret == {"y": "d"}
    assert [(node.name, node.inputs) for node in rewritten.nodes[1:]] == [
        ("FakeSink0", ("d",)),
        ("FakeSink0/_4", ("d",)),
    ]


def test_the_names_of_its_datasets_tell_which_optimizers_are_switched() -> None:
    f = function(
        "f(d: variant, n: int64) -> y: variant",
        """\
        zero = Const() {dtype=int64, value=number(0)}
        skip = SkipDataset(d, zero:output:0)
        batch = BatchDatasetV2(map:handle:0, n, zero:output:0)
        map = MapDataset(skip:handle:0) {f=fn("g")}
        """,
        {"y": "batch:handle:0"},
        attrs={"_tf_data_function": True},
    )
    graph = GraphDef((), {"f": f})

    ops = {"MapAndBatchDataset": "MapAndBatchDataset", "skip": "SkipDataset", "map": "MapDataset"}
    ops |= {"batch": "BatchDatasetV2", "another": "MapDataset"}

    def switched(*logged: str) -> tuple[str, ...]:
        found, unreplayed = find_switched(graph, "f", 1, {name: ops[name] for name in logged}, TABLE)
        assert unreplayed == ""
        return found

    assert switched("MapAndBatchDataset") == ()
    assert switched("skip", "MapAndBatchDataset") == ("noop_elimination",)
    assert switched("map", "batch") == ("map_and_batch_fusion",)
    assert switched("skip", "map", "batch") == ("noop_elimination", "map_and_batch_fusion")
    assert switched("another") == ()
    assert find_switched(graph, "f", 0, ops, TABLE) == ((), "")
