"""The order that Grappler sorts the nodes of a function into."""

from __future__ import annotations

from simplace.graph.node_def import NodeDef
from simplace.lowering.topological_sort import sort_nodes


def order(*nodes: tuple[str, ...]) -> list[str]:
    return [node.name for node in sort_nodes(["x"], [NodeDef(name, "Op", "", refs, {}) for name, *refs in nodes])]


def test_nodes_that_take_nothing_come_first() -> None:
    assert order(("a", "x"), ("c",), ("b", "a:y:0", "c:y:0"), ("d",)) == ["c", "d", "a", "b"]


def test_a_node_comes_when_the_last_that_it_waits_for_has_come() -> None:
    assert order(("last", "^b", "a:y:0"), ("b", "a:y:0", "a:y:1"), ("a", "x")) == ["a", "b", "last"]
