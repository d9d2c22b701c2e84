"""Hand a placed graph over to networkx, for analysis by other tools."""

from __future__ import annotations

from typing import Any, Protocol

from simplace.graph.model import Graph


class PlacedGraph(Protocol):
    """Offer what a placement has: its graph and the device of each node."""

    @property
    def graph(self) -> Graph:
        """Return the graph."""
        ...

    def device(self, i: int) -> str:
        """Return a node's full device name, "" for none."""
        ...


def to_networkx(placement: PlacedGraph) -> Any:
    """Return a networkx.MultiDiGraph: nodes by name with op, requested, device; edges with slots and `control`."""
    import networkx as nx

    graph = placement.graph
    made = nx.MultiDiGraph()
    for i in range(2, len(graph)):
        made.add_node(graph.names[i], op=graph.ops[i], requested=graph.requested[i], device=placement.device(i))
    columns = zip(graph.edge_src, graph.edge_src_slot, graph.edge_dst, graph.edge_dst_slot, strict=True)
    for src, src_slot, dst, dst_slot in columns:
        if src > 1 and dst > 1:
            made.add_edge(
                graph.names[src], graph.names[dst], src_slot=src_slot, dst_slot=dst_slot, control=src_slot < 0
            )
    return made
