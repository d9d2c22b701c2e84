"""The copies that one run of a session makes: of the part of the graph that it needs, of what it feeds and fetches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from simplace.errors import NodeNotFoundError
from simplace.partition.copies import copy_columns
from simplace.partition.rewrite_graph import before_pruning
from simplace.partition.session_subgraph import rewrite_for_run
from simplace.partition.shapes import TensorSizes
from simplace.partition.transfers import Copy
from simplace.program.placed_graph import PlacedGraph
from simplace.program.program import ObservedRun, SessionRun
from simplace.program.run_ends import feed_rewrite


@dataclass(frozen=True, slots=True)
class RunCopies:
    """Record of the copies of a run, in terms of the whole graph.

    A copy of what is fed has producer -1 and the name of the fed tensor; one that is only fetched has no consumers.
    """

    run: ObservedRun
    copies: tuple[Copy, ...]


def copies_of_runs(placed: PlacedGraph, runs: Sequence[ObservedRun]) -> list[RunCopies]:
    """Return the copies of each run; a run that names a node which only TensorFlow has is left out."""
    if not placed.is_whole:
        return []
    found = []
    for observed in runs:
        try:
            found.append(RunCopies(observed, tuple(_list_copies(placed, observed.run))))
        except NodeNotFoundError:
            continue
    return found


def merge_copies(runs: Sequence[RunCopies]) -> list[Copy]:
    """Return the copies of several runs between nodes of the graph, each once, with the consumers of all runs."""
    merged: dict[tuple[object, ...], Copy] = {}
    for copy in (copy for each in runs for copy in each.copies if copy.producer >= 0 and copy.consumers):
        key = (copy.tensor, copy.source, copy.target, copy.source_memory, copy.target_memory)
        known = merged.get(key)
        consumers = copy.consumers if known is None else tuple(sorted({*known.consumers, *copy.consumers}))
        merged[key] = replace(copy, consumers=consumers)
    return list(merged.values())


def _list_copies(placed: PlacedGraph, run: SessionRun) -> list[Copy]:
    pruned = rewrite_for_run(before_pruning(placed), run).placed
    fed = _name_feeds(run)
    sizes, ids = TensorSizes(placed), placed.graph.ids
    found = []
    for copy in copy_columns(pruned):
        name = pruned.graph.names[copy.producer]
        known = (ids.get(pruned.graph.names[node], -1) for node in copy.consumers)
        consumers = tuple(node for node in known if node >= 0)
        if name not in fed:
            found.append(replace(copy, producer=ids.get(name, -1), consumers=consumers))
            continue
        node, _, slot = fed[name].partition(":")
        shape, size = sizes.shape(ids[node], int(slot)), sizes.size(ids[node], int(slot))
        found.append(replace(copy, producer=-1, consumers=consumers, tensor=fed[name], shape=shape, size=size))
    return found


def _name_feeds(run: SessionRun) -> Mapping[str, str]:
    """Map the nodes that take the place of fed tensors to the tensors."""
    named = {}
    for i, feed in enumerate(run.feeds):
        node, _, slot = feed.partition(":")
        named[feed_rewrite(node, int(slot), 1, -1 if run.by_rendezvous else i).name] = feed
    return named
