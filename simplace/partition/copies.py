"""The copies and collectives of a whole program, in the terms of the graph that was placed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from simplace.partition.collective_members import Collective, find_collectives, with_origins
from simplace.partition.rewrite_graph import rewrite_placed_graph
from simplace.partition.rewritten_graph import Rewritten
from simplace.partition.traffic import Traffic, count_traffic
from simplace.partition.transfers import Copy, CopyColumns, MemoryTypes, find_transfers
from simplace.partition.worker_graphs import has_master
from simplace.program.placed_graph import PlacedGraph


@dataclass(frozen=True)
class Communication:
    """Record of what a placed graph sends in a step: its copies in columns, and its collectives."""

    copies: CopyColumns
    collectives: tuple[Collective, ...] = ()

    @cached_property
    def traffic(self) -> Traffic:
        """Return the counts that all outputs show."""
        return count_traffic(self.copies, self.collectives)

    def with_copies(self, copies: Sequence[Copy]) -> Communication:
        """Return the same collectives beside other copies of the graph, such as those of a session's runs."""
        number = {(copy.producer, copy.slot, copy.target): i for i, copy in enumerate(copies)}
        found = []
        for one in self.collectives:
            own = [self.copies[i] for i in one.copies]
            places = [number.get((copy.producer, copy.slot, copy.target), -1) for copy in own]
            if not own or max(places) >= 0:  # else no run came to it
                found.append(replace(one, copies=tuple(place for place in places if place >= 0)))
        return Communication(CopyColumns.of(copies), tuple(found))


def list_copies(placed: PlacedGraph) -> list[Copy]:
    """List the transfers of a placed graph as `copy_columns` does, each as a record."""
    return list(copy_columns(placed))


def copy_columns(placed: PlacedGraph) -> CopyColumns:
    """Return the transfers of a placed graph, by first consumer and input slot; those between tasks come first.

    Where a control loop is the consumer, it counts as the node that it was made for: the first one of the loop on that
    device which needs something from elsewhere.
    """
    return find_communication(placed).copies


def find_communication(placed: PlacedGraph, rewritten: Rewritten | None = None) -> Communication:
    """Return what a placed graph sends; its copies are in the order of `copy_columns`.

    `rewritten` is what `rewrite_placed_graph` makes of it, where one has that already.
    """
    if not placed.is_whole:  # TensorFlow refused it: it is not rewritten
        return Communication(find_transfers(placed, MemoryTypes(placed)).columns)
    rewritten = rewritten or rewrite_placed_graph(placed)
    found = _of_cluster(rewritten) if has_master(placed) else rewritten.transfers.columns
    collectives = find_collectives(rewritten.placed, found)
    if rewritten.placed is placed:
        return Communication(found, collectives)

    def record(i: int) -> Copy:
        copy = found[i]
        return replace(copy, producer=rewritten.origin[copy.producer], consumers=rewritten.originals(copy.consumers))

    producers = [rewritten.origin[node] for node in found.producers]
    copies = CopyColumns(producers, found.slots, found.sources, found.targets, found.sizes, found.tensor, record)
    return Communication(copies, with_origins(collectives, rewritten.origin))


def _of_cluster(rewritten: Rewritten) -> CopyColumns:
    from simplace.partition.graph_partition import (
        partition_rewritten,  # there the partition by task decides what the second one copies
    )

    return CopyColumns.of(partition_rewritten(rewritten).copies)
