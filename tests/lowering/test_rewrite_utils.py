"""What the functions of a dataset become when TensorFlow rewrites its graph."""

from __future__ import annotations

from simplace.graph.node_def import GraphDef
from simplace.lowering.rewrite_utils import rewrite_functions
from tests.lowering.worlds import FLOAT, function


def test_each_result_gets_a_sink_beside_it() -> None:
    f = function(
        "f(x: float) -> y: float, z: float", "FakeSink0 = Neg(x)\nn = Neg(x)", {"y": "n:y:0", "z": "FakeSink0:y:0"}
    )
    (rewritten,) = rewrite_functions(GraphDef((), {"f": f}), 1).library.values()
    assert rewritten.ret == f.ret
    assert [(node.name, node.op, node.inputs, node.attrs) for node in rewritten.nodes[2:]] == [
        ("FakeSink0/_3", "Identity", ("n:y:0",), {"T": FLOAT}),
        ("FakeSink1", "Identity", ("FakeSink0:y:0",), {"T": FLOAT}),
    ]


def test_each_rewriting_leaves_sinks_of_its_own() -> None:
    f = function("f(x: float) -> y: float", "n = Neg(x)", {"y": "n:y:0"})
    (rewritten,) = rewrite_functions(GraphDef((), {"f": f}), 2).library.values()
    assert [(node.name, node.inputs) for node in rewritten.nodes[1:]] == [
        ("FakeSink0", ("n:y:0",)),
        ("FakeSink0/_3", ("n:y:0",)),
    ]
