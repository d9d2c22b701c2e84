"""The part of a session's graph that one of its runs needs, as it is partitioned for that run.

A run that happened on a cluster is simulated as one of a session of its own: fed tensors come from arguments.
"""

from __future__ import annotations

from dataclasses import replace

from simplace.errors import NodeNotFoundError, join_choices
from simplace.graph.node_def import ShapeAttr
from simplace.partition.graph_partition import PartitionedGraph, partition_rewritten
from simplace.partition.rewrite_graph import before_pruning, rewrite_placed_graph
from simplace.partition.session_subgraph import rewrite_for_run
from simplace.partition.shapes import TensorSizes
from simplace.program.needed_nodes import find_needed
from simplace.program.placed_graph import PlacedGraph
from simplace.program.program import ObservedRun, SessionRun
from simplace.program.run_ends import FED_SHAPE, feed_rewrite


def choose_run(placed: PlacedGraph) -> ObservedRun | None:
    """Return the run of a session that needs the most nodes, the first of several; None where there is none.

    A run that names a node which only TensorFlow has is left out.
    """
    ids, program = placed.graph.ids, placed.program
    runs = program.runs if program.pruned_to is None else ()
    known = [one for one in runs if ids.keys() >= set(_list_names(one.run))]
    return max(known, key=lambda one: len(find_needed(placed.graph, one.run)), default=None)


def find_run(placed: PlacedGraph, name: str) -> ObservedRun:
    """Return the first run with that line, or that fetches or runs a node of that name.

    Raises `NodeNotFoundError` with what the runs fetch otherwise.
    """
    for one in placed.program.runs:
        tensors = (*one.run.fetches, *one.run.targets)
        if one.at == name or name in tensors or name in {tensor.partition(":")[0] for tensor in tensors}:
            return one
    there = join_choices({tensor for one in placed.program.runs for tensor in (*one.run.fetches, *one.run.targets)})
    raise NodeNotFoundError(
        f"no run of {placed.program.title} fetches {name!r}; its runs fetch {there}"
        if there
        else f"{placed.program.title} is not a session with runs, so there is no run {name!r} to choose"
    )


def partition_run(placed: PlacedGraph, run: SessionRun) -> PartitionedGraph:
    """Partition what a run needs; the nodes of the result lead back to those of the whole graph.

    Raises `NodeNotFoundError` for a name that the graph does not have.
    """
    pruned = prune_to_run(placed, run)
    rewritten = rewrite_placed_graph(pruned)
    ids, names = placed.graph.ids, pruned.graph.names
    origin = tuple(ids.get(names[node], -1) if node >= 0 else -1 for node in rewritten.origin)
    return partition_rewritten(replace(rewritten, origin=origin))


def prune_to_run(placed: PlacedGraph, run: SessionRun) -> PlacedGraph:
    """Return the part of a graph that a run needs; raise `NodeNotFoundError` for a name that it does not have."""
    if missing := sorted(set(_list_names(run)) - placed.graph.ids.keys()):
        raise NodeNotFoundError(f"{placed.program.name} has no node {missing[0]!r}")
    return _with_shapes(placed, replace(run, by_rendezvous=False))


def _with_shapes(placed: PlacedGraph, run: SessionRun) -> PlacedGraph:
    """Prune a graph to a run; the arguments that take the place of fed tensors have the shapes of these.

    What the graph itself says of them, as of a placeholder, is all that Grappler knows
    (`GetFeedShapeAndTypeFromAttribute` of graph_execution_state.cc).
    """
    pruned = rewrite_for_run(before_pruning(placed), run).placed
    sizes, graph = TensorSizes(placed), pruned.graph
    attrs = list(graph.attrs)
    for index, feed in enumerate(run.feeds):
        name, _, slot = feed.partition(":")
        node = placed.graph.ids[name]
        shape, declared = sizes.shape(node, int(slot or 0)), placed.graph.attrs[node].get("shape")
        argument = graph.ids.get(feed_rewrite(name, int(slot or 0), 1, index).name)
        if argument is not None:
            known = declared if isinstance(declared, ShapeAttr) else ShapeAttr(None)
            given = {} if shape is None else {"_output_shapes": (ShapeAttr(shape),)}
            attrs[argument] = {**attrs[argument], FED_SHAPE: known, **given}
    return replace(pruned, graph=replace(graph, attrs=attrs))


def _list_names(run: SessionRun) -> list[str]:
    tensors = [*run.feeds, *run.fetches, *run.targets, *(end for pair in run.connections for end in pair)]
    return [tensor.partition(":")[0] for tensor in tensors]
