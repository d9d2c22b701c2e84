"""Control inputs that say again what another input does."""

from __future__ import annotations

from simplace.graph.dtypes import DataType
from simplace.graph.node_def import ArgDef, FunctionDef, NodeDef
from simplace.lowering.mutable_graph_view import drop_repeated_controls


def kept(*nodes: NodeDef) -> list[tuple[str, ...]]:
    function = FunctionDef(
        name="f", inputs=(ArgDef("x", DataType.DT_INT64),), outputs=(), nodes=nodes, ret={}, control_ret={},
        control_outputs=(), attrs={}, arg_attrs={},
    )  # fmt: skip
    return [node.inputs for node in drop_repeated_controls(function).nodes]


def node(name: str, op: str, *inputs: str) -> NodeDef:
    return NodeDef(name, op, "", inputs, {})


def test_a_node_runs_after_what_it_takes_once() -> None:
    nodes = node("a", "NoOp"), node("b", "Neg", "x", "^x", "^a", "^a"), node("c", "Neg", "b:y:0", "^a", "^b")
    assert kept(*nodes) == [(), ("x", "^a"), ("b:y:0", "^a")]


def test_what_tells_which_branch_runs_is_waited_for() -> None:
    nodes = node("s", "Switch", "x", "x"), node("i", "Identity", "s:output_true:0")
    user = node("u", "Neg", "i:output:0", "^i", "^i")
    assert kept(*nodes, user)[-1] == ("i:output:0", "^i")
