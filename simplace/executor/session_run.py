"""What one run of a session makes of a partitioned graph: the part that its targets need, in TensorFlow's own order.

The order of more than eight edges out of a node depends on addresses (EdgeSet of tensorflow/core/graph/edgeset.h), so
it can only be observed in a run.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import NamedTuple

from simplace.graph.algorithm import reverse_reachable
from simplace.graph.builder import CONTROL
from simplace.partition.graph_partition import PartEdge, PartitionedGraph

INLINE_EDGES = 8  # EdgeSet keeps the order in which up to that many edges were added


def prune_to_targets(graph: PartitionedGraph, targets: Collection[str]) -> PartitionedGraph:
    """Return the part of a graph that the named nodes need, the whole graph if none of them is in it."""
    needed = {i for i, node in enumerate(graph.nodes) if node.name in targets}
    if not needed:
        return graph
    senders = {receive: send for send, receive in graph.receiver.items()}

    def predecessors(node: int) -> list[int]:
        return [edge.src for edge in graph.ins[node]] + ([senders[node]] if node in senders else [])

    needed = reverse_reachable(needed, predecessors) | set(graph.sources)
    number = {old: new for new, old in enumerate(sorted(needed))}
    outs = [
        tuple(
            PartEdge(number[old], edge.src_slot, number[edge.dst], edge.dst_slot)
            for edge in graph.outs[old]
            if edge.dst in number
        )
        for old in number
    ]
    receiver = {number[send]: number[receive] for send, receive in graph.receiver.items() if receive in number}
    return replace(graph, nodes=tuple(graph.nodes[old] for old in number), outs=tuple(outs), receiver=receiver)


class ObservedOrder(NamedTuple):
    """Record of the nodes of a step by start; `dispatched` ones do not start in the order in which they get ready."""

    names: Sequence[str]
    dispatched: Collection[str] = ()


def with_observed_order(graph: PartitionedGraph, *orders: ObservedOrder) -> PartitionedGraph:
    """Order the edges of nodes that have more than eight by when their ends started in some steps.

    Of the source's, one goes to the sink (`Graph::Graph` of tensorflow/core/graph/graph.cc), which is no node here.

    Each run of a node bears out the order of the ends that it made ready, which had no other input left to wait for.
    An order that contradicts those before it does not count. Ends that none tells of keep their place at the end.
    """
    places = [_find_places(order.names) for order in orders]
    dispatched = [order.dispatched for order in orders]
    names = [node.name for node in graph.nodes]

    def observed(edges: tuple[PartEdge, ...]) -> tuple[PartEdge, ...]:
        if not edges or len(edges) + (graph.nodes[edges[0].src].role == "source") <= INLINE_EDGES:
            return edges
        ends = {names[edge.dst]: {names[into.src] for into in graph.ins[edge.dst]} for edge in edges}
        ready = [{end: ends[end] for end in ends if end not in own} for own in dispatched]
        rank = _rank_ends(list(zip(places, ready, strict=True)), names[edges[0].src], list(ends))
        return tuple(sorted(edges, key=lambda edge: (edge.dst_slot == CONTROL, rank[names[edge.dst]])))

    return replace(graph, outs=tuple(observed(edges) for edges in graph.outs))


def _find_places(order: Sequence[str]) -> dict[str, list[int]]:
    places: dict[str, list[int]] = {}
    for place, name in enumerate(order):
        places.setdefault(name, []).append(place)
    return places


def _rank_ends(
    orders: Sequence[tuple[Mapping[str, list[int]], Mapping[str, Collection[str]]]], node: str, ends: Sequence[str]
) -> dict[str, int]:
    """Rank the ends of a node so that each of its runs is borne out; ends that it never made ready come last.

    `orders` map nodes to their places, and the ends of which they tell to the names of all their inputs.
    """
    before: dict[str, set[str]] = {}
    found: list[str] = []
    for places, own in orders:
        more = {end: set(known) for end, known in before.items()}
        for first, second in _find_pairs(places, node, own):
            more.setdefault(second, set()).add(first)
            more.setdefault(first, set())
        try:
            found, before = list(TopologicalSorter(more).static_order()), more
        except CycleError:
            continue
    first_places = {end: [places.get(end, [sys.maxsize])[0] for places, _ in orders] for end in set(ends) - set(found)}
    found += sorted(first_places, key=lambda end: (first_places[end], end))
    return {end: rank for rank, end in enumerate(found)}


def _find_pairs(
    places: Mapping[str, list[int]], node: str, ends: Mapping[str, Collection[str]]
) -> Iterator[tuple[str, str]]:
    """Yield the ends that a run of a node made ready one after the other."""
    runs = places.get(node, [])
    for number, place in enumerate(runs):
        starts = {end: _find_start(places.get(end, []), runs, number) for end in ends}
        made_ready = sorted(
            (start, end)
            for end, start in starts.items()
            if place < start < sys.maxsize
            and all(start <= _find_next(places.get(name, []), place) for name in ends[end])
        )
        # They start one after the other: what starts later than all of them was made ready by something else.
        yield from pairwise(end for start, end in made_ready if start < made_ready[0][0] + len(ends))


def _find_start(of_end: Sequence[int], of_node: Sequence[int], number: int) -> int:
    """Return the place of the run of an end that goes with a run of a node, a very late one where there is none.

    Where both ran equally often, as in all iterations of a loop, these are the runs of the same number: an end may
    start just after a node that has gone on to the next iteration.
    """
    return of_end[number] if len(of_end) == len(of_node) else _find_next(of_end, of_node[number])


def _find_next(places: Sequence[int], place: int) -> int:
    """Return where a node ran next after a place, a very late place where it did not."""
    later = bisect_right(places, place)
    return places[later] if later < len(places) else sys.maxsize
