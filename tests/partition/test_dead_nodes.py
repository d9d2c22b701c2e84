"""Nodes that nothing needs: they are gone before a step, what has an effect stays."""

from dataclasses import replace

from simplace.partition.dead_nodes import remove_dead_nodes
from simplace.partition.graph_partition import PartitionedGraph, partition_graph
from tests.executor.worlds import placed

WORLD = """
    v = VarHandleOp() @c {dtype=float, shape=dims(2)}
    x = Placeholder() @c {dtype=float}
    unused = Neg(x) @c
    more = Neg(unused) @c
    written = AssignVariableOp(v, x) @c {dtype=float}
    y = Neg(x) @c
"""
RESULT = "    r = _Retval(y) @c {T=float, index=0}\n"


def names(graph: PartitionedGraph) -> list[str]:
    return [node.name for node in graph.nodes if node.role == "op"]


def test_what_no_result_and_no_effect_needs_is_removed() -> None:
    whole = partition_graph(placed(WORLD + RESULT).placed)
    kept = remove_dead_nodes(whole)
    assert set(names(whole)) - set(names(kept)) == {"unused", "more"}
    assert all(edge.src < len(kept) and edge.dst < len(kept) for edges in kept.outs for edge in edges)


def test_a_graph_without_results_stays_whole() -> None:
    whole = partition_graph(placed(WORLD).placed)
    assert remove_dead_nodes(whole) is whole


def test_targets_of_a_run_stay_with_what_they_need() -> None:
    whole = replace(partition_graph(placed(WORLD).placed), targets=frozenset({"more"}))
    kept = remove_dead_nodes(whole)
    assert set(names(whole)) - set(names(kept)) == {"y"}


def test_a_copy_that_nobody_needs_is_still_made() -> None:
    world = WORLD + RESULT + "    far = Neg(y) @g0\n"
    kept = remove_dead_nodes(partition_graph(placed(world).placed))
    assert [node.role for node in kept.nodes if node.role in ("send", "recv")] == ["send", "recv"]
    assert "far" not in names(kept)
