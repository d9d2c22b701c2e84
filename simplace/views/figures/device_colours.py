"""The colour of each device of a set, as in every figure."""

from __future__ import annotations

from collections import Counter

from simplace.devices.device_set import DeviceSet
from viz.figure import Group
from viz.palette import look


def device_colours(devices: DeviceSet) -> dict[str, str]:
    """Return the "#rrggbb" that fills the nodes of each device, by full name."""
    counts: Counter[str] = Counter()
    colours = {}
    for device in devices:
        group = Group(device.name, device.short, kind=device.type, index=counts[device.type])
        colours[device.name] = look(group).fill
        counts[device.type] += 1
    return colours
