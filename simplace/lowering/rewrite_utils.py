"""What the functions of a dataset become when TensorFlow rewrites its graph: fused, an Identity more for each result.

Mirrors `AddFakeSinks` and `RemoveFakeSinks` of tensorflow/core/data/rewrite_utils.cc: a sink is added for each result,
the graph is optimised, and the result goes back to what it was, while the sink stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import combinations

from simplace.graph.node_def import FunctionDef, GraphDef, NodeDef
from simplace.lowering.dataset_fusions import OPTIMIZERS, fuse_datasets, make_unique_name, makes_dataset

_FAKE_SINK = "FakeSink"


@dataclass(frozen=True, slots=True)
class RewrittenFunctions:
    """Record of a graph whose functions are rewritten, and by function of which node each fused one is made first."""

    graph: GraphDef
    made_of: Mapping[str, Mapping[str, str]]


def rewrite_functions(graph: GraphDef, times: int, left_out: Sequence[str] = ()) -> RewrittenFunctions:
    """Return a graph whose functions have the sinks of each rewriting, and are optimized but for what is left out.

    The last rewriting optimizes; one before it shards the dataset (grappler/optimizers/data/{auto_shard,rebatch}.cc).
    """
    library = dict(graph.library)
    for _ in range(times):
        library = {name: _add_sinks(function) for name, function in library.items()}
    fused = {name: fuse_datasets(function, library, left_out) for name, function in library.items() if times}
    library |= {name: function for name, (function, _) in fused.items()}
    return RewrittenFunctions(replace(graph, library=library), {name: made for name, (_, made) in fused.items()})


def find_left_out(graph: GraphDef, name: str, times: int, logged: Set[str]) -> tuple[str, ...]:
    """Return the optimizers that do nothing for a function, by the names of its datasets as TensorFlow logged them.

    The options of a dataset turn them off. None are returned where none of the choices explains the names.
    """
    if not times or not any(makes_dataset(node.op) for node in graph.library[name].nodes):
        return ()
    for count in range(len(OPTIMIZERS) + 1):
        for left_out in combinations(OPTIMIZERS, count):
            nodes = rewrite_functions(graph, times, left_out).graph.library[name].nodes
            if {node.name for node in nodes if makes_dataset(node.op)} == logged:
                return left_out
    return ()


def count_sinks(names: Iterable[str]) -> int:
    """Return how many nodes have the name of a sink."""
    return sum(name.startswith(_FAKE_SINK) for name in names)


def _add_sinks(function: FunctionDef) -> FunctionDef:
    names = {node.name for node in function.nodes}
    sinks: list[NodeDef] = []
    for i, result in enumerate(function.outputs):
        name = make_unique_name(f"{_FAKE_SINK}{i}", names, len(names) + 1)  # the new node counts
        names.add(name)
        sinks.append(NodeDef(name, "Identity", "", (function.ret[result.name],), {"T": result.dtype}))
    return replace(function, nodes=(*function.nodes, *sinks))
