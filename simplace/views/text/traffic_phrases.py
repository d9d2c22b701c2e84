"""What a step sends, in one vocabulary: copies, control signals, collectives."""

from __future__ import annotations

from collections.abc import Sequence

from simplace.devices.device_name import DeviceName
from simplace.devices.device_ranges import fold_names
from simplace.devices.device_set import DeviceSet
from simplace.graph import dtypes
from simplace.partition.collective_members import Collective
from simplace.partition.traffic import CollectiveVolume, Traffic, Volume
from simplace.placement.placement import Placement
from simplace.result import Placed
from simplace.views.text import quantities
from viz import Column, Table


def list_traffic(traffic: Traffic) -> list[str]:
    """Return what a step sends, a phrase for each kind of transfer that there is."""
    copies, within = traffic.copies, traffic.memory_copies
    parts = []
    if copies.count:
        parts.append(f"{quantities.format_count(copies.count, 'copy')} between devices, {format_volume(copies)}")
    if within.count:
        count = quantities.format_count(within.count, "copy")
        parts.append(f"{count} between host and device memory, {format_volume(within)}")
    if traffic.control_signals:
        parts.append(quantities.format_count(traffic.control_signals, "control signal"))
    return [*parts, *map(describe_collectives, traffic.collectives)]


def describe_traffic(traffic: Traffic) -> str:
    """Return what a step sends in one line, "" where it sends nothing."""
    return "" if traffic.is_empty else f"sends in a step: {'; '.join(list_traffic(traffic))}"


def describe_collectives(found: CollectiveVolume) -> str:
    """Return collectives of one kind in a phrase, such as "all-reduce ×53, 8.9 MiB per GPU".

    >>> gpus = ("/job:a/replica:0/task:0/device:GPU:0", "/job:a/replica:0/task:0/device:GPU:1")
    >>> describe_collectives(CollectiveVolume("all-reduce", gpus, 2, Volume(53, 9 << 20, 0), False, 0))
    'all-reduce ×53, 9 MiB per GPU'
    >>> describe_collectives(CollectiveVolume("all-gather", gpus, 4, Volume(1, 0, 1), True, 6))
    'all-gather ×1, unknown size per GPU (2 of 4 members are here; by 6 of the copies)'
    """
    each = name_member(found.devices)
    said = [f"{len(found.devices)} of {found.participants} members are here"] * (
        found.participants > len(found.devices)
    ) + [f"by {found.copies:,} of the copies"] * found.is_copied
    more = f" ({'; '.join(said)})" if said else ""
    return f"{found.kind} ×{found.volume.count:,}, {format_volume(found.volume)} per {each}{more}"


def format_volume(volume: Volume) -> str:
    """Return the bytes of transfers, "≥" before them where some are unknown.

    >>> format_volume(Volume(2, 8, 1)), format_volume(Volume(1, 0, 1))
    ('≥ 8 B', 'unknown size')
    """
    known = [volume.size] * (volume.count > volume.unknown)
    return quantities.format_total_bytes([*known, *[None] * min(volume.unknown, 1)])


def format_sent(what: str, volume: Volume) -> str:
    """Return how many transfers a step has, and their bytes.

    >>> format_sent("copy", Volume(2, 8, 1)), format_sent("tensor", Volume(1, 0, 1))
    ('2 copies, ≥ 8 B per step', '1 tensor of unknown size per step')
    """
    count = quantities.format_count(volume.count, what)
    size = f" of {format_volume(volume)}" if volume.unknown == volume.count else f", {format_volume(volume)}"
    return f"{count}{size} per step"


def name_member(devices: Sequence[str]) -> str:
    """Return what one member of a collective is: the type of all its devices, "device" where they differ."""
    types = {spec.type for name in devices if (spec := DeviceName.parse(name)) is not None}
    return types.pop() or "device" if len(types) == 1 else "device"


def join_devices(devices: DeviceSet, names: Sequence[str]) -> str:
    """Return device names as short as they can be: the first and the last of those that follow each other on a task."""
    return ", ".join(fold_names(devices.by_name[name].short for name in names))


def collective_table(placed: Placed, limit: int | None = None) -> Table:
    """Return the collectives, the largest first."""
    placement, order = placed.placement, sorted(placed.collectives, key=lambda one: (-(one.size or 0), one.members))
    rows = tuple(
        (
            one.kind,
            join_devices(placement.devices, one.devices),
            dtypes.format_dtype(one.dtype),
            quantities.format_bytes(one.size),
            _describe_members(placement, one),
            placement.notes(one.members[0]).at or "-",
        )
        for one in order[:limit]
    )
    more = len(order) - len(rows)
    columns = (Column("collective", flexible=False), Column("between", flexible=False), Column("type", flexible=False),
               Column(f"per {name_member(order[0].devices) if order else 'device'}", "right", flexible=False),
               Column("by", listed=True), Column("line"))  # fmt: skip
    return Table(columns, rows, footer=f"and {more:,} more; --table lists them all" if more else "")


def _describe_members(placement: Placement, one: Collective) -> str:
    """Return how a collective is done: by which op of each device, or by how many copies to and from which op."""
    name = placement.graph.names[one.members[0]]
    if one.copies:
        return f"{quantities.format_count(len(one.copies), 'copy')} to and from {name}"
    rest = len(one.members) - 1
    return f"{name}, {rest} more" if rest else name
