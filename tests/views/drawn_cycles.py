"""Whether a figure shows a cycle of boxes."""

from __future__ import annotations

import networkx as nx

from viz import Figure


def is_drawn_acyclic(figure: Figure) -> bool:
    """Return whether the edges between boxes make no cycle; one that leaves or enters a whole device joins no boxes."""
    joined = [
        (edge.source, edge.target)
        for edge in figure.edges
        if edge.kind != "collective" and not (edge.from_group or edge.to_group)
    ]
    return nx.is_directed_acyclic_graph(nx.DiGraph(joined))
