"""The records of a layout in rows: what has to be laid out, and where it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from viz.packing.grid import Rect, Size

NOWHERE = "\0"  # the id of the place of nodes that are on no device


@dataclass(frozen=True, slots=True)
class Device:
    """Describe a device: the size of its title and those of its nodes, by id; `frame` is the box around it, or ""."""

    id: str
    title: Size
    nodes: Mapping[str, Size]
    frame: str = ""


@dataclass(frozen=True, slots=True)
class Wire:
    """Describe a line between two nodes, or the devices of these; `tag` is the size of the label on it."""

    source: str
    target: str
    tag: Size | None = None
    from_device: bool = False
    to_device: bool = False


@dataclass(frozen=True, slots=True)
class Parts:
    """Record of what is laid out, sizes in units: devices in order, and the titles of frames.

    `bars` are nodes outside of devices that become as wide as the drawing.
    """

    devices: tuple[Device, ...]
    wires: tuple[Wire, ...] = ()
    bars: Mapping[str, Size] = field(default_factory=dict)
    frames: Mapping[str, Size] = field(default_factory=dict)

    @property
    def home(self) -> dict[str, str]:
        """Return the device of each node that is on one."""
        return {node: device.id for device in self.devices for node in device.nodes}

    @property
    def inner_tags(self) -> frozenset[int]:
        """Return the places of the wires whose tags stand between boxes of one device, not beside it."""
        home = self.home
        return frozenset(
            place
            for place, wire in enumerate(self.wires)
            if wire.tag and not (wire.from_device or wire.to_device) and wire.source != wire.target
            and home.get(wire.source, "") == home.get(wire.target)
        )  # fmt: skip


@dataclass(slots=True)
class Arrangement:
    """Record of where everything is: boxes by id, tags by the place of their wire."""

    size: Size = (0, 0)
    nodes: dict[str, Rect] = field(default_factory=dict)
    devices: dict[str, Rect] = field(default_factory=dict)
    titles: dict[str, Rect] = field(default_factory=dict)
    frames: dict[str, Rect] = field(default_factory=dict)
    frame_titles: dict[str, Rect] = field(default_factory=dict)
    tags: dict[int, Rect] = field(default_factory=dict)

    @property
    def solid(self) -> list[Rect]:
        """Return the boxes that no line may cross."""
        return [one for found in (self.nodes, self.titles, self.frame_titles, self.tags) for one in found.values()]


def count_covered(found: Arrangement) -> int:
    """Return how many squares of the grid a task, a device, a bar or a tag covers, each counted once."""
    wide, high = found.size
    rows: dict[int, bytearray] = {}
    for box in (*found.frames.values(), *found.devices.values(), *found.nodes.values(), *found.tags.values()):
        left, right = max(box.left, 0), min(box.right, wide)
        for y in range(max(box.top, 0), min(box.bottom, high)):
            rows.setdefault(y, bytearray(wide))[left:right] = b"\1" * max(right - left, 0)
    return sum(row.count(1) for row in rows.values())
