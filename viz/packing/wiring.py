"""Route all lines of an arrangement, one after the other, and then each once more around the others."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from viz.packing.grid import Point, Rect
from viz.packing.maze import HASTE, OUTSIDE, Maze, Port, list_ports
from viz.packing.parts import Arrangement, Parts

_EFFORTS = ((60, 2, HASTE), (100, 1, HASTE), (math.inf, 1, 2.0))  # up to so many lines: rounds in which lines that
# meet others are routed anew, and the haste of each search: of many lines some cross in any case
_ROUND_SHARE = 4  # of a round shape's side: a line ends no nearer to a corner
_RING = 5  # units around everything, for lines

Key = tuple[int, int]  # the place of a wire, and which part of it: 0 up to its tag, 1 from there on


@dataclass(frozen=True, slots=True)
class Wiring:
    """Record of an arrangement with the corners of its lines, and how many steps lines share with others."""

    arrangement: Arrangement
    lines: dict[Key, list[Point]]
    shared: int


@dataclass(frozen=True, slots=True)
class _End:
    box: Rect
    room: int = OUTSIDE
    inset: int = 1
    off_middle: float = 0.4


def route_wires(
    parts: Parts, arrangement: Arrangement, down: dict[str, bool], rounded: frozenset[str]
) -> Wiring | None:
    """Return an arrangement with its lines; None where one has no way.

    `down` tells of each device whether its boxes follow each other downwards, `rounded` are nodes without corners.
    """
    moved = move_arrangement(arrangement, _RING, _RING)
    wide, high = (side + 2 * _RING + 1 for side in moved.size)
    numbers = {device.id: i for i, device in enumerate(parts.devices)}
    maze = Maze(wide, high, moved.solid, [moved.devices[device.id] for device in parts.devices])
    maze.add_rims(moved.frames.values())
    home, inner = parts.home, parts.inner_tags

    def node_end(node: str) -> _End:
        box = moved.nodes[node]
        inset = max(min(box.size) // _ROUND_SHARE, 1) if node in rounded else 1
        return _End(box, numbers.get(home.get(node, ""), OUTSIDE), inset, 0.02 if node in parts.bars else 0.4)

    def device_end(node: str) -> _End:
        return _End(moved.devices[home[node]], inset=2, off_middle=0.05)

    tasks: dict[Key, tuple[list[Port], list[Port], frozenset[int]]] = {}
    for place, wire in enumerate(parts.wires):
        one = device_end(wire.source) if wire.from_device and wire.source in home else node_end(wire.source)
        other = device_end(wire.target) if wire.to_device and wire.target in home else node_end(wire.target)
        tag = [] if wire.tag is None else [_End(moved.tags[place], one.room if place in inner else OUTSIDE)]
        ends = [one, *tag, other]
        local = one.room if one.room == other.room and (place in inner or not tag) else OUTSIDE
        flow = None if local < 0 else (0, 1) if down[parts.devices[local].id] else (1, 0)
        for part, (start, end) in enumerate(itertools.pairwise(ends)):
            back = None if flow is None else (-flow[0], -flow[1])
            tasks[place, part] = (
                list_ports(start.box, flow, start.inset, start.off_middle),
                list_ports(end.box, back, end.inset, end.off_middle),
                frozenset((start.room, end.room, start.room if local >= 0 else OUTSIDE)),
            )
    order = sorted(tasks, key=lambda key: (OUTSIDE in tasks[key][2], _measure_gap(*tasks[key][:2]), key))
    lines: dict[Key, list[Point]] = {}
    rounds, haste = next((rounds, haste) for most, rounds, haste in _EFFORTS if len(order) <= most)
    for number in range(1 + rounds):
        for i, key in enumerate(order):
            if number:
                if not maze.meets_another(i, lines[key]):
                    continue
                maze.remove(i, lines[key])
            path = maze.route(*tasks[key], haste)
            if path is None:
                return None
            lines[key] = path
            maze.add(i, path)
    return _trim(Wiring(moved, lines, maze.count_shared()))


def _measure_gap(starts: Sequence[Port], goals: Sequence[Port]) -> int:
    return min(
        abs(one.at[0] - other.at[0]) + abs(one.at[1] - other.at[1]) for one in starts[::3] for other in goals[::3]
    )


def move_arrangement(found: Arrangement, x: int, y: int) -> Arrangement:
    """Return an arrangement elsewhere."""
    return Arrangement(
        found.size,
        {key: box.moved(x, y) for key, box in found.nodes.items()},
        {key: box.moved(x, y) for key, box in found.devices.items()},
        {key: box.moved(x, y) for key, box in found.titles.items()},
        {key: box.moved(x, y) for key, box in found.frames.items()},
        {key: box.moved(x, y) for key, box in found.frame_titles.items()},
        {place: box.moved(x, y) for place, box in found.tags.items()},
    )


def _trim(wiring: Wiring) -> Wiring:
    """Return it without the empty columns and rows around it."""
    found = wiring.arrangement
    boxes = [*found.solid, *found.devices.values(), *found.frames.values()]
    xs = [x for path in wiring.lines.values() for x, _ in path] + [x for box in boxes for x in (box.left, box.right)]
    ys = [y for path in wiring.lines.values() for _, y in path] + [y for box in boxes for y in (box.top, box.bottom)]
    if not xs:
        return wiring
    left, top = min(xs), min(ys)
    moved = replace(move_arrangement(found, -left, -top), size=(max(xs) - left, max(ys) - top))
    lines = {key: [(x - left, y - top) for x, y in path] for key, path in wiring.lines.items()}
    return Wiring(moved, lines, wiring.shared)
