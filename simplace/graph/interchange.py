"""Convert a placed graph to networkx, for analysis by other tools."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from simplace.graph.graph import Graph


def to_networkx(graph: Graph, device: Callable[[int], str]) -> Any:
    """Return a networkx.MultiDiGraph: nodes by name with op, requested, device; edges with slots and `control`.

    `device` returns the full device name of a node, "" for none.
    """
    import networkx as nx

    made = nx.MultiDiGraph()
    for i in graph.op_ids:
        made.add_node(graph.names[i], op=graph.ops[i], requested=graph.requested[i], device=device(i))
    columns = zip(graph.edge_src, graph.edge_src_slot, graph.edge_dst, graph.edge_dst_slot, strict=True)
    for src, src_slot, dst, dst_slot in columns:
        if src > 1 and dst > 1:
            made.add_edge(
                graph.names[src], graph.names[dst], src_slot=src_slot, dst_slot=dst_slot, control=src_slot < 0
            )
    return made
