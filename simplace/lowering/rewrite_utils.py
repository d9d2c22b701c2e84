"""What the functions of a dataset become when TensorFlow rewrites its graph: an Identity more for each result.

Mirrors `AddFakeSinks` and `RemoveFakeSinks` of tensorflow/core/data/rewrite_utils.cc: a sink is added for each result,
the graph is optimised, and the result goes back to what it was, while the sink stays.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from simplace.graph.node_def import FunctionDef, GraphDef, NodeDef

_FAKE_SINK = "FakeSink"


def rewrite_functions(graph: GraphDef, times: int) -> GraphDef:
    """Return a graph whose functions all have their sinks, those of each rewriting."""
    for _ in range(times):
        graph = replace(graph, library={name: _add_sinks(function) for name, function in graph.library.items()})
    return graph


def count_sinks(names: Iterable[str]) -> int:
    """Return how many nodes have the name of a sink."""
    return sum(name.startswith(_FAKE_SINK) for name in names)


def _add_sinks(function: FunctionDef) -> FunctionDef:
    names = {node.name for node in function.nodes}
    sinks: list[NodeDef] = []
    for i, result in enumerate(function.outputs):
        name = _make_unique_name(f"{_FAKE_SINK}{i}", names)
        names.add(name)
        sinks.append(NodeDef(name, "Identity", "", (function.ret[result.name],), {"T": result.dtype}))
    return replace(function, nodes=(*function.nodes, *sinks))


def _make_unique_name(prefix: str, names: set[str]) -> str:
    """Return the prefix, or the prefix with the first number that makes it a new name."""
    number, name = len(names) + 1, prefix  # the new node counts
    while name in names:
        name, number = f"{prefix}/_{number}", number + 1
    return name
