"""All that a placed graph sends in one step: copies, control signals, collectives; and how all outputs count them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from simplace.graph.builder import CONTROL
from simplace.partition.collective_members import Collective, CollectiveKind
from simplace.partition.transfers import CopyColumns


@dataclass(frozen=True, slots=True)
class Volume:
    """Record of a number of transfers and their bytes; `unknown` of them have no known size."""

    count: int
    size: int
    unknown: int

    @classmethod
    def of(cls, sizes: Iterable[int | None]) -> Volume:
        """Sum sizes up.

        >>> Volume.of([4, None, 8])
        Volume(count=3, size=12, unknown=1)
        """
        listed = list(sizes)
        return cls(len(listed), sum(size or 0 for size in listed), sum(size is None for size in listed))


@dataclass(frozen=True, slots=True)
class CollectiveVolume:
    """Record of the collectives of one kind over the same participants: `volume` is what each of them puts in.

    `is_copied` where they are made of copies, which also count as such: `copies` of them.
    """

    kind: CollectiveKind
    devices: tuple[str, ...]
    participants: int
    volume: Volume
    is_copied: bool
    copies: int


@dataclass(frozen=True, slots=True)
class Traffic:
    """Record of what a step sends, in the one vocabulary of all outputs.

    `copies` carry a tensor from one device to another. `memory_copies` stay on one device, between the host's memory
    and its own. `control_signals` carry order alone. `collectives` exchange tensors of several devices at once.
    """

    copies: Volume
    memory_copies: Volume
    control_signals: int
    collectives: tuple[CollectiveVolume, ...]

    @property
    def is_empty(self) -> bool:
        """Return whether nothing is sent."""
        return not (self.copies.count or self.memory_copies.count or self.control_signals or self.collectives)


def count_traffic(copies: CopyColumns, collectives: Sequence[Collective]) -> Traffic:
    """Count what a step sends."""
    rows = list(zip(copies.slots, copies.sources, copies.targets, copies.sizes, strict=True))
    groups: dict[tuple[object, ...], list[Collective]] = {}
    for one in collectives:
        groups.setdefault((one.kind, one.devices, one.participants, bool(one.copies)), []).append(one)
    return Traffic(
        Volume.of(size for slot, source, target, size in rows if slot != CONTROL and source != target),
        Volume.of(size for slot, source, target, size in rows if slot != CONTROL and source == target),
        sum(slot == CONTROL for slot in copies.slots),
        tuple(_sum_collectives(group) for group in groups.values()),
    )


def _sum_collectives(group: Sequence[Collective]) -> CollectiveVolume:
    first, copies = group[0], {number for one in group for number in one.copies}
    volume = Volume.of(one.size for one in group)
    return CollectiveVolume(first.kind, first.devices, first.participants, volume, bool(copies), len(copies))
