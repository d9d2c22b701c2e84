"""Check the invariants of a graph; every stage that makes a graph must keep them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from simplace.graph.builder import CONTROL, SINK, SOURCE
from simplace.graph.dtypes import base_type, is_ref
from simplace.graph.graph import Graph


def verify_graph(graph: Graph, repeats: Collection[int] = ()) -> None:
    """Raise `AssertionError` with the invariant in words where the graph breaks one.

    `repeats` are nodes whose control edges may be there several times, such as the Merge of a control loop.
    """
    _verify_nodes(graph)
    _verify_edges(graph, repeats)
    _verify_inputs(graph)


def _verify_nodes(graph: Graph) -> None:
    columns = (graph.ops, graph.requested, graph.assigned, graph.attrs, graph.in_types, graph.out_types, graph.origins)
    assert all(len(column) == len(graph) for column in columns), "each column has one entry per node"
    assert graph.names[:2] == [SOURCE, SINK], "node 0 is the source, node 1 the sink"
    assert not any(graph.in_types[i] or graph.out_types[i] for i in (0, 1)), "source and sink carry no data"
    counts = Counter(graph.names)
    twice = sorted(name for name, count in counts.items() if count > 1)
    assert not twice, f"node names are unique, but these are not: {twice}"


def _verify_edges(graph: Graph, repeats: Collection[int]) -> None:
    columns = (graph.edge_src, graph.edge_src_slot, graph.edge_dst, graph.edge_dst_slot)
    assert len({len(column) for column in columns}) == 1, "each column has one entry per edge"
    rows = list(zip(*columns, strict=True))
    once = [row for row in rows if not (row[0] in repeats and row[1] == CONTROL)]
    assert len(set(once)) == len(once), "no edge is there twice"
    for edge, (src, src_slot, dst, dst_slot) in enumerate(rows):
        what = f"edge {edge}, {src}:{src_slot} -> {dst}:{dst_slot},"
        assert 0 <= min(src, dst) <= max(src, dst) < len(graph), f"{what} joins nodes of the graph"
        assert src != 1, f"{what} does not leave the sink"
        assert dst != 0, f"{what} does not enter the source"
        assert (src_slot == CONTROL) == (dst_slot == CONTROL), f"{what} is a control edge at both ends or at none"
        if src_slot == CONTROL:
            continue
        assert 0 <= src_slot < len(graph.out_types[src]), f"{what} leaves an output that {graph.names[src]} has"
        assert 0 <= dst_slot < len(graph.in_types[dst]), f"{what} enters an input that {graph.names[dst]} has"
        made, taken = graph.out_types[src][src_slot], graph.in_types[dst][dst_slot]
        assert base_type(made) == base_type(taken), (
            f"{what} carries the type that {graph.names[dst]} takes: {made}, {taken}"
        )
        assert is_ref(made) or not is_ref(taken), f"{what} brings the reference that {graph.names[dst]} takes"


def _verify_inputs(graph: Graph) -> None:
    for node in graph.op_ids:
        slots = sorted(graph.edge_dst_slot[edge] for edge in graph.in_edges[node] if not graph.is_control(edge))
        wanted = list(range(len(graph.in_types[node])))
        assert slots == wanted, f"{graph.names[node]} has one edge into each of its {len(wanted)} inputs, not {slots}"
