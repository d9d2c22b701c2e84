"""What the functions of a dataset become when TensorFlow rewrites its graph: fused, an Identity more for each result.

Mirrors `AddFakeSinks` and `RemoveFakeSinks` of tensorflow/core/data/rewrite_utils.cc: a sink is added for each result,
the graph is optimised, and the result goes back to what it was, while the sink stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import chain, combinations, permutations
from typing import Self

from simplace.graph.flatrep import order_functions
from simplace.graph.node_def import FuncRef, FunctionDef, GraphDef, NodeDef
from simplace.graph.op_kinds import CASES, IFS, WHILES
from simplace.kernels.registry import KernelTable
from simplace.lowering.cf_sink import sink_into_branches
from simplace.lowering.dataset_fusions import (
    OFF_BY_DEFAULT,
    ON_BY_DEFAULT,
    SORTING,
    find_optimizers,
    fuse_datasets,
    makes_dataset,
)
from simplace.lowering.fusion_utils import OF_DATASETS, make_unique_name
from simplace.lowering.reachable_functions import select_reached
from simplace.program.program import Caller

_FAKE_SINK = "FakeSink"
_MAX_PERMUTED = 3  # of more functions than these not all orders are tried, as each costs as much as the rewriting
TFG_OPTIMIZER = "tfg_optimizer"
META_OPTIMIZER = "meta_optimizer"  # of a function as of others: by whichever optimizers Grappler has
FUNCTION_OPTIMIZER = "function_optimizer"  # makes a function for a call that needs a part of one, or knows arguments
_MARKS_OF_SINKING = ("_tfg_cf_sunk_", "_tfg_inlined_")


@dataclass(frozen=True, slots=True)
class Rewriting:
    """Record of how often a graph is rewritten, with which optimizers switched, and how ops are moved into branches.

    `sunk_before` and `opened` are those of `Caller`.
    """

    times: int
    switched: tuple[str, ...] = ()
    sunk_before: bool = False
    opened: tuple[str, ...] = ()

    @classmethod
    def of_caller(cls, caller: Caller) -> Self:
        """Return how the graph is rewritten in which an op calls a function."""
        return cls(caller.rewrites, caller.switched, caller.sunk_before, caller.opened)


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


def rewrite_functions(graph: GraphDef, how: Rewriting, table: KernelTable) -> RewrittenFunctions:
    """Return a graph whose functions have the sinks of each rewriting, and are optimized: see `fuse_datasets`.

    At the end of each rewriting ops are moved into branches (`sink_into_branches`); the first function of the graph's
    library reaches the others, and once some have been made anew only those that it reaches then are there.

    The last rewriting optimizes; one before it shards the dataset (grappler/optimizers/data/{auto_shard,rebatch}.cc).
    """
    library, names = dict(graph.library), set(graph.library)
    first = next(iter(library), "")
    opened: Sequence[str] = how.opened or order_functions(library)
    added: dict[str, FunctionDef] = {}
    origins: dict[str, Mapping[str, tuple[str, str]]] = {}
    made_of: dict[str, Mapping[str, str]] = {}
    if how.sunk_before:
        library = _mark_called(library)
        sunk = sink_into_branches(library, table, opened=opened)
        library |= sunk.library
        origins |= sunk.made_of
        library = select_reached(library[first], library)
        opened = order_functions(library)
    for i in range(how.times):
        library = {name: _add_sinks(function) for name, function in library.items()}
        if i == how.times - 1:
            optimized = {name: fuse_datasets(each, library, table, how.switched) for name, each in library.items()}
            library |= {name: made.function for name, made in optimized.items()}
            for made in optimized.values():
                added = {**made.added, **added}  # TensorFlow keeps what it has of a name
                origins = {**made.origins, **origins}
            library = {**added, **library}
            made_of = {name: made.made_of for name, made in optimized.items()}
        sunk = sink_into_branches(library, table, opened=opened)
        library |= sunk.library
        origins |= {name: _trace(nodes, origins) for name, nodes in sunk.made_of.items()}
        library = {name: remove_sinks(function) for name, function in library.items()}
    new = {name: function for name, function in library.items() if name not in names}
    return RewrittenFunctions(replace(graph, library=library), made_of, new, origins)


def _mark_called(library: Mapping[str, FunctionDef]) -> dict[str, FunctionDef]:
    """Return functions of which those count as functions of datasets, too, that one of these calls.

    Mirrors `PropagateTFDataAttrs` of grappler/optimizers/meta_optimizer.cc.
    """
    datasets = [function for function in library.values() if function.attrs.get(OF_DATASETS)]
    called = set(chain.from_iterable(select_reached(function, library) for function in datasets))
    return {
        name: replace(function, attrs={**function.attrs, OF_DATASETS: True}) if name in called else function
        for name, function in library.items()
    }


def _trace(
    nodes: Mapping[str, tuple[str, str]], origins: Mapping[str, Mapping[str, tuple[str, str]]]
) -> dict[str, tuple[str, str]]:
    return {node: origins.get(of, {}).get(before, (of, before)) for node, (of, before) in nodes.items()}


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


def find_sinking(
    graph: GraphDef, name: str, how: Rewriting, logged: Iterable[str], table: KernelTable, beside: Sequence[Set[str]]
) -> tuple[Rewriting, str]:
    """Return how ops of a function were moved into branches, by the names of its nodes as TensorFlow logged them.

    It opens all functions of a graph in the order of the hash map that has them: `beside` are those that may be in one
    graph with the function. Where none of the choices explains the log it is the one given, with the name of the
    optimizer.
    """
    reached = select_reached(graph.library[name], graph.library)
    opened = [key for key, function in reached.items() if _has_branches(function, reached)]
    if not opened:
        return how, ""
    paths = [f"/{each}/" for each in logged]
    marked = [path for path in paths if was_sunk((path,))]
    ends = {suffix for each in logged for suffix in _list_suffixes(each)}
    orders = list_orders(opened, (reached.keys(), *beside))
    ways = [replace(how, sunk_before=before, opened=order) for order in orders for before in (False, True)]
    again = [replace(way, switched=(*how.switched, SORTING[0])) for way in (how, *ways)] if may_sort(how) else []
    for choice in (how, *ways, *again):
        library = rewrite_functions(graph, choice, table).graph.library
        nodes = _list_branch_nodes(library[name], library)
        stay = {node.name for node in nodes if not _list_called(node)}
        names = [f"/{node.name}/" for node in nodes]
        if stay <= ends and all(any(each in path for each in names) for path in marked):
            return choice, ""
    return how, TFG_OPTIMIZER if marked else ""


def may_sort(how: Rewriting) -> bool:
    """Return whether nodes may be sorted by an optimizer of which nothing else tells that it is switched."""
    return how.times > 0 and not any(each in SORTING for each in how.switched)


def list_orders(names: Sequence[str], libraries: Iterable[Set[str]]) -> list[tuple[str, ...]]:
    """Return the orders of some functions in libraries, each once, then the others if there are few functions."""
    walks = [order_functions(library) for library in libraries]
    known = {tuple(each for each in walk if each in names): None for walk in walks}
    return [*known, *(each for each in permutations(names) if len(names) <= _MAX_PERMUTED and each not in known)]


def _has_branches(function: FunctionDef, library: Mapping[str, FunctionDef]) -> bool:
    """Return whether a function has branches, or a loop with some."""
    if any(node.op in IFS or node.op in CASES for node in function.nodes):
        return True
    loops = [node for node in function.nodes if node.op in WHILES]
    return any(_has_branches(library[name], library) for node in loops for name in _list_called(node))


def was_sunk(names: Iterable[str]) -> bool:
    """Return whether names of nodes tell that ops were moved into branches, or a branch made anew."""
    return any(mark in name for name in names for mark in _MARKS_OF_SINKING)


def _list_suffixes(name: str) -> list[str]:
    """Return a name, and what follows each of its slashes."""
    return [name, *(name[i + 1 :] for i, letter in enumerate(name) if letter == "/")]


def _list_branch_nodes(function: FunctionDef, library: Mapping[str, FunctionDef]) -> list[NodeDef]:
    """Return the nodes of a function's branches and loops, and of those in turn; calls are placed on their own."""
    found: list[NodeDef] = []
    for node in function.nodes:
        if node.op in IFS or node.op in CASES or node.op in WHILES:
            for name in _list_called(node):
                found += [*library[name].nodes, *_list_branch_nodes(library[name], library)]
    return found


def _list_called(node: NodeDef) -> list[str]:
    values = [one for value in node.attrs.values() for one in (value if isinstance(value, tuple) else (value,))]
    return [value.name for value in values if isinstance(value, FuncRef)]


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
