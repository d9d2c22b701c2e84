"""What the functions of a dataset become when TensorFlow rewrites its graph: fused, an Identity more for each result.

Mirrors `AddFakeSinks` and `RemoveFakeSinks` of tensorflow/core/data/rewrite_utils.cc: a sink is added for each result,
the graph is optimised, and the result goes back to what it was, while the sink stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from simplace.graph.node_def import FunctionDef, GraphDef, NodeDef
from simplace.kernels.registry import KernelTable
from simplace.lowering.dataset_fusions import (
    OFF_BY_DEFAULT,
    ON_BY_DEFAULT,
    find_optimizers,
    fuse_datasets,
    makes_dataset,
)
from simplace.lowering.fusion_utils import make_unique_name

_FAKE_SINK = "FakeSink"


@dataclass(frozen=True, slots=True)
class RewrittenFunctions:
    """Record of a graph whose functions are rewritten, and by function of which node each fused one is made first.

    `added` are the functions that optimizers made, which are in the graph's library, too, and `origins` of which
    function's node each of their nodes is made.
    """

    graph: GraphDef
    made_of: Mapping[str, Mapping[str, str]]
    added: Mapping[str, FunctionDef]
    origins: Mapping[str, Mapping[str, tuple[str, str]]]


def rewrite_functions(
    graph: GraphDef, times: int, table: KernelTable, switched: Sequence[str] = ()
) -> RewrittenFunctions:
    """Return a graph whose functions have the sinks of each rewriting, and are optimized: see `fuse_datasets`.

    The last rewriting optimizes; one before it shards the dataset (grappler/optimizers/data/{auto_shard,rebatch}.cc).
    """
    library = add_all_sinks(graph.library, times)
    optimized = {name: fuse_datasets(each, library, table, switched) for name, each in library.items() if times}
    library |= {name: made.function for name, made in optimized.items()}
    added: dict[str, FunctionDef] = {}
    origins: dict[str, Mapping[str, tuple[str, str]]] = {}
    for made in optimized.values():
        added = {**made.added, **added}  # TensorFlow keeps what it has of a name
        origins = {**made.origins, **origins}
    library = {name: remove_sinks(function) for name, function in {**added, **library}.items()}
    made_of = {name: made.made_of for name, made in optimized.items()}
    return RewrittenFunctions(
        replace(graph, library=library), made_of, {name: library[name] for name in added}, origins
    )


def find_switched(
    graph: GraphDef, name: str, times: int, logged: Mapping[str, str], table: KernelTable
) -> tuple[tuple[str, ...], str]:
    """Return the optimizers that are switched for a function, by the ops of its nodes as TensorFlow logged them.

    The options of a dataset switch them. Where none of the choices explains the datasets, none are returned, and with
    them the name of an optimizer, off by default, that changed them.
    """
    function = graph.library[name]
    if not times or not any(makes_dataset(node.op) for node in function.nodes):
        return (), ""
    datasets = {(node, op) for node, op in logged.items() if makes_dataset(op)}
    needed = find_optimizers({node for node, _ in datasets} - {node.name for node in function.nodes})
    library = add_all_sinks(graph.library, times)
    optional = [each for each in (*ON_BY_DEFAULT, *OFF_BY_DEFAULT) if each not in needed]
    choices = (each for count in range(len(optional) + 1) for each in combinations(optional, count))
    for switched in ((*needed, *each) for each in choices):
        nodes = fuse_datasets(library[name], library, table, switched).function.nodes
        if {(node.name, node.op) for node in nodes if makes_dataset(node.op)} == datasets:
            return switched, ""
    return (), needed[0] if needed else ""


def count_sinks(names: Iterable[str]) -> int:
    """Return how many nodes have the name of a sink."""
    return sum(name.startswith(_FAKE_SINK) for name in names)


def add_all_sinks(library: Mapping[str, FunctionDef], times: int) -> dict[str, FunctionDef]:
    """Return functions with the sinks of several rewritings, of which the results go through the last ones."""
    found = dict(library)
    for i in range(times):
        before = found if i == 0 else {name: remove_sinks(function) for name, function in found.items()}
        found = {name: _add_sinks(function) for name, function in before.items()}
    return found


def _add_sinks(function: FunctionDef) -> FunctionDef:
    """Return a function that hands each result through an Identity more."""
    names = {node.name for node in function.nodes}
    sinks: list[NodeDef] = []
    ret = dict(function.ret)
    for i, result in enumerate(function.outputs):
        name = make_unique_name(f"{_FAKE_SINK}{i}", names, len(names) + 1)  # the new node counts
        names.add(name)
        sinks.append(NodeDef(name, "Identity", "", (function.ret[result.name],), {"T": result.dtype}))
        ret[result.name] = f"{name}:output:0"
    return replace(function, nodes=(*function.nodes, *sinks), ret=ret)


def remove_sinks(function: FunctionDef) -> FunctionDef:
    """Return a function whose results are what an Identity takes that has handed them through; it stays."""
    taken = {node.name: node.inputs[0] for node in function.nodes if node.op == "Identity" and len(node.inputs) == 1}
    ret = {result: taken.get(ref.partition(":")[0], ref) for result, ref in function.ret.items()}
    return replace(function, ret=ret)
