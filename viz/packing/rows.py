"""Put devices in rows, in their order, with the labels of lines beside them; rows are as wide as each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

from viz.packing.block import ALONG, Block, Link, lay_out_block
from viz.packing.grid import Rect, Size
from viz.packing.parts import Arrangement, Device, Parts
from viz.packing.plans import Plan

Side = Literal["above", "below", "left", "right"]
_STRIPS: tuple[Side, Side] = ("above", "below")
_STACKS: tuple[Side, Side] = ("left", "right")
_PAD, _GAP = 3, 3  # units between a device's rim and its boxes, and between boxes outside of devices


@dataclass(slots=True)
class _Cell:
    """A device with the tags on each side of it."""

    device: Device
    block: Block
    tags: dict[Side, list[int]] = field(default_factory=lambda: {"above": [], "below": [], "left": [], "right": []})


class RowLayout:
    """Lay out parts by a plan; `room` are units to add to all gaps, for lines that found no way."""

    def __init__(self, parts: Parts, plan: Plan, room: int = 0) -> None:
        self.parts = parts
        self.plan = plan
        self.room = room
        self.found = Arrangement()
        self.spare = 0  # units by which each row is higher than it must be
        self.inner = {_write_key(place): place for place in sorted(parts.inner_tags)}
        local: dict[str, list[tuple[str, str]]] = {device.id: [] for device in parts.devices}
        boxes = {device.id: dict(device.nodes) for device in parts.devices}
        home = parts.home
        for place, wire in enumerate(parts.wires):
            one, key = home.get(wire.source), _write_key(place)
            if key in self.inner:
                boxes[home[wire.source]][key] = self._tag(place)
                local[home[wire.source]] += [(wire.source, key), (key, wire.target)]
            elif one is not None and one == home.get(wire.target) and wire.source != wire.target:
                local[one].append((wire.source, wire.target))
        self.row_of = {i: r for r, row in enumerate(plan.rows) for i in row}
        self.cells = [
            _Cell(device, self._lay_out(boxes[device.id], local[device.id], plan.down[self.row_of[i]]))
            for i, device in enumerate(parts.devices)
        ]
        self._share_tags()

    def _lay_out(self, boxes: Mapping[str, Size], links: Sequence[Link], down: bool) -> Block:
        along = ALONG - self.plan.is_tight
        return lay_out_block(boxes, links, down, self.room // 2, self.plan.folds, along)

    def _share_tags(self) -> None:
        """Assign each tag to the device that takes part in fewer transfers (else the later), where the other one is."""
        number = {node: i for i, device in enumerate(self.parts.devices) for node in device.nodes}
        inner = set(self.inner.values())
        tagged = [(place, wire) for place, wire in enumerate(self.parts.wires) if wire.tag and place not in inner]
        crossing = Counter(number.get(end, -1) for _, wire in tagged for end in (wire.source, wire.target))
        for place, wire in tagged:
            ends = [number.get(wire.target, -1), number.get(wire.source, -1)]
            own = min((end for end in ends if end >= 0), key=lambda end: (crossing[end], -end))
            other = ends[1] if own == ends[0] else ends[0]
            self.cells[own].tags[self._find_side(own, other)].append(place)
        self._join_strips(number)

    def _join_strips(self, number: Mapping[str, int]) -> None:
        """Put all tags between two rows in one strip, where no row becomes wider than the widest, or all may."""
        widest = max(map(self._measure_width, self.plan.rows), default=0)
        for upper, lower in pairwise(self.plan.rows):
            for row, other, side, goal in ((upper, lower, *_STRIPS[::-1]), (lower, upper, *_STRIPS)):
                moved = [(i, place) for i in row for place in self.cells[i].tags[side]]
                ends = [self._find_other_end(number, i, place) for i, place in moved]
                if not (any(self.cells[j].tags[goal] for j in other) and moved and set(ends) <= set(other)):
                    continue
                before = {j: list(self.cells[j].tags[goal]) for j in other}
                for (_, place), j in zip(moved, ends, strict=True):
                    self.cells[j].tags[goal].append(place)
                if self.plan.widens or self._measure_width(other) <= widest:
                    for i in row:
                        self.cells[i].tags[side] = []
                    break
                for j, places in before.items():
                    self.cells[j].tags[goal] = places

    def _find_other_end(self, number: Mapping[str, int], own: int, place: int) -> int:
        wire = self.parts.wires[place]
        ends = [number.get(wire.source, -1), number.get(wire.target, -1)]
        return ends[1] if ends[0] == own else ends[0]

    def _find_side(self, own: int, other: int) -> Side:
        if other < 0:
            return "below"
        if self.row_of[own] == self.row_of[other]:
            return "left" if other < own else "right"
        return "above" if other < own else "below"

    def measure(self) -> Size:
        """Return the least size of the drawing."""
        return self.place().size

    def place(self, fill: Size = (0, 0)) -> Arrangement:
        """Return where everything is; devices are made wider and higher until a size is filled."""
        least = self.place((fill[0], 0)).size[1] if fill[1] else 0
        self.spare = max(fill[1] - least, 0) // max(len(self.plan.rows), 1)
        self.found = Arrangement()
        wide = max([fill[0], *map(self._measure_width, self.plan.rows)], default=0)
        at = 0
        for band in self._list_bands():
            at = self._place_band(band, at, wide) + _GAP + self.room
        self._place_bars(max(at - _GAP - self.room, 0), wide)
        for cell in self.cells:
            self._place_tags(cell)
        return self.found

    def _list_bands(self) -> list[list[Sequence[int]]]:
        """Return the rows by what frames they are in; rows without one stand each for themselves."""
        bands: list[list[Sequence[int]]] = []
        before: list[str] = []
        for row in self.plan.rows:
            frames = self._list_frames(row)
            if any(frames) and frames == before:
                bands[-1].append(row)
            else:
                bands.append([row])
            before = frames
        return bands

    def _list_frames(self, row: Sequence[int]) -> list[str]:
        return list(dict.fromkeys(self.parts.devices[i].frame for i in row))

    def _place_band(self, band: Sequence[Sequence[int]], top: int, wide: int) -> int:
        """Place the rows of some frames, which stand side by side, with the frames; return the bottom."""
        frames = [frame for frame in self._list_frames(band[0]) if frame]
        at = top + max((self.parts.frames[frame][1] + 2 for frame in frames), default=0)
        for row in band:
            at = self._place_row(row, at, wide) + _GAP + self.room
        at += (_PAD if frames else 0) - _GAP - self.room
        for frame in frames:
            ends = [self._span_frame(frame, row, wide) for row in band]
            rect = Rect(min(left for left, _ in ends), top, max(right for _, right in ends), at)
            self.found.frames[frame] = rect
            self.found.frame_titles[frame] = Rect.at(rect.left + 1, top + 1, self.parts.frames[frame])
        return at

    def _span_frame(self, frame: str, row: Sequence[int], wide: int) -> tuple[int, int]:
        """Return the columns between which a row is in a frame."""
        own = [i for i in row if self.parts.devices[i].frame == frame]
        first, last = (self.found.devices[self.parts.devices[i].id] for i in (own[0], own[-1]))
        return first.left - self._margins(own[0])[0], last.right + self._margins(own[-1])[1]

    def _place_bars(self, at: int, wide: int) -> None:
        for node, size in self.parts.bars.items():
            at += _GAP + self.room
            self.found.nodes[node] = Rect.at(0, at, (wide, size[1]))
            at += size[1]
        self.found.size = (wide, at)

    def _tag(self, place: int) -> Size:
        size = self.parts.wires[place].tag
        assert size is not None, "only wires with a tag are shared out"
        return size

    def _measure_strip(self, places: Sequence[int]) -> Size:
        sizes = [self._tag(place) for place in places]
        width = sum(size[0] for size in sizes) + (_GAP + self.room) * max(len(sizes) - 1, 0)
        return width, max((size[1] for size in sizes), default=0)

    def _measure_stack(self, places: Sequence[int]) -> Size:
        sizes = [self._tag(place) for place in places]
        height = sum(size[1] for size in sizes) + (_GAP + self.room) * max(len(sizes) - 1, 0)
        return max((size[0] for size in sizes), default=0), height

    def _measure_device(self, cell: _Cell) -> int:
        """Return how wide a device is at least."""
        strips = [self._measure_strip(cell.tags[side])[0] for side in _STRIPS]
        frame = self.parts.frames.get(cell.device.frame, (0, 0))[0] + 2  # which one device alone may have to hold
        return max(cell.block.size[0] + 2 * _PAD, cell.device.title[0] + 3, frame, *strips)

    def _stands_beside(self, cell: _Cell, wide: int) -> bool:
        """Return whether the boxes of a device that wide have room beside its title."""
        return cell.block.size[0] + 2 * (cell.device.title[0] + 1 + _PAD) <= wide

    def _measure_device_height(self, cell: _Cell, wide: int) -> int:
        stacks = [self._measure_stack(cell.tags[side])[1] for side in _STACKS]
        title, inner = 1 + cell.device.title[1], cell.block.size[1]
        if self._stands_beside(cell, wide):
            return max(title + 1, inner + 2 * _PAD, *stacks)
        return max(title + (2 + inner + _PAD if cell.device.nodes else 1), *stacks)

    def _margins(self, i: int) -> tuple[int, int]:
        """Return the room on the left and the right of a device, for tags and for the rim of its frame."""
        wide = [self._measure_stack(self.cells[i].tags[side])[0] for side in _STACKS]
        row = self.plan.rows[self.row_of[i]]
        beside = [[j for j in row if self.parts.devices[j].frame == self.parts.devices[i].frame][k] for k in (0, -1)]
        rims = [_PAD if self.parts.devices[i].frame and i == end else 0 for end in beside]
        return tuple((one + _GAP + self.room if one else 0) + rim for one, rim in zip(wide, rims, strict=True))  # type: ignore[return-value]

    def _strips(self, row: Sequence[int]) -> tuple[int, int]:
        """Return the room above and below the devices of a row, for tags."""
        high = [max(self._measure_strip(self.cells[i].tags[side])[1] for i in row) for side in _STRIPS]
        return tuple(one + _GAP if one else 0 for one in high)  # type: ignore[return-value]

    def _measure_width(self, row: Sequence[int]) -> int:
        wide = sum(self._measure_device(self.cells[i]) + sum(self._margins(i)) for i in row)
        return wide + (_GAP + self.room) * (len(row) - 1)

    def _share_width(self, row: Sequence[int], wide: int) -> list[int]:
        """Return how wide each device of a row is: as wide as it must be, and what is left in equal parts."""
        spare, more = divmod(wide - self._measure_width(row), len(row))
        return [self._measure_device(self.cells[i]) + spare + (k < more) for k, i in enumerate(row)]

    def _measure_height(self, row: Sequence[int], wide: int) -> int:
        widths = self._share_width(row, wide)
        high = max(self._measure_device_height(self.cells[i], own) for i, own in zip(row, widths, strict=True))
        return high + sum(self._strips(row))

    def _place_row(self, row: Sequence[int], top: int, wide: int) -> int:
        """Place a row, the devices made wider to fill it, and return its bottom."""
        bottom = top + self._measure_height(row, wide) + self.spare
        above, below = self._strips(row)
        x = 0
        for i, own in zip(row, self._share_width(row, wide), strict=True):
            cell = self.cells[i]
            before, after = self._margins(i)
            rect = Rect(x + before, top + above, x + before + own, bottom - below)
            self._place_device(cell, rect)
            x = rect.right + after + _GAP + self.room
        return bottom

    def _place_device(self, cell: _Cell, rect: Rect) -> None:
        self.found.devices[cell.device.id] = rect
        title = self.found.titles[cell.device.id] = Rect.at(rect.left + 1, rect.top + 1, cell.device.title)
        wide, high = cell.block.size
        x = rect.left + (rect.size[0] - wide) // 2
        first = rect.top + _PAD if self._stands_beside(cell, rect.size[0]) else title.bottom + 2
        y = first + max(rect.bottom - _PAD - first - high, 0) // 2
        placed = {node: one.moved(x, y) for node, one in cell.block.rects.items()}
        self.found.tags |= {self.inner[node]: one for node, one in placed.items() if node in self.inner}
        self.found.nodes |= {node: one for node, one in placed.items() if node not in self.inner}

    def _place_tags(self, cell: _Cell) -> None:
        """Place the tags of a device beside it, in the order of what their lines join."""
        rect = self.found.devices[cell.device.id]
        for side in _STRIPS:
            x = (rect.left + rect.right - self._measure_strip(cell.tags[side])[0]) // 2
            for place in sorted(cell.tags[side], key=lambda place: self._find_middle(place)[0]):
                size = self._tag(place)
                y = rect.top - _GAP - size[1] if side == "above" else rect.bottom + _GAP
                self.found.tags[place] = Rect.at(x, y, size)
                x += size[0] + _GAP + self.room
        for side in _STACKS:
            y = (rect.top + rect.bottom - self._measure_stack(cell.tags[side])[1]) // 2
            for place in sorted(cell.tags[side], key=lambda place: self._find_middle(place)[1]):
                size = self._tag(place)
                x = rect.left - _GAP - size[0] if side == "left" else rect.right + _GAP
                self.found.tags[place] = Rect.at(x, y, size)
                y += size[1] + _GAP + self.room

    def _find_middle(self, place: int) -> tuple[float, float]:
        """Return the point in the middle between the ends of a wire."""
        wire = self.parts.wires[place]
        one, other = self.found.nodes[wire.source].middle, self.found.nodes[wire.target].middle
        return (one[0] + other[0]) / 2, (one[1] + other[1]) / 2


def _write_key(place: int) -> str:
    """Return what the label of a wire is called among the boxes of its device; no box has such a name."""
    return f"\0{place}"
