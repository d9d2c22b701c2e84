"""The nodes of a graph that a run of a session needs."""

from __future__ import annotations

from simplace.graph.algorithm import reverse_reachable
from simplace.graph.graph import Graph
from simplace.program.program import SessionRun


def find_needed(graph: Graph, run: SessionRun) -> set[int]:
    """Return the nodes that a run needs, those behind what it feeds left out.

    A name that only TensorFlow has is passed over.
    """
    fed, wanted = (
        {graph.ids[name] for name in (end.partition(":")[0] for end in ends) if name in graph.ids}
        for ends in (run.feeds, (*run.fetches, *run.targets))
    )
    return reverse_reachable(
        wanted, lambda node: [] if node in fed else (graph.edge_src[edge] for edge in graph.in_edges[node])
    )
