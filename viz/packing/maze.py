"""Route lines along a grid, around boxes, so that they bend, cross and run beside each other as little as can be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import pairwise

from viz.packing.grid import Point, Rect

_BEND, _CROSS, _SHARE, _RIM = 3.0, 4.0, 60.0, 3.0  # what a bend, a crossing, a shared step, one along a rim cost
_NEAR, _BESIDE = 0.5, 0.5  # a step just beside a rim or a box, as whose part a line would look, or beside another line
_HEAD, _HEADED = 3.0, 5  # what it costs more to cross a line near its ends, and how many units its head may take there
_OTHER_SIDE = 4.0  # what it costs to leave a box on another side than the one preferred
HASTE = 1.25
_STUB = 2  # units that a line runs straight out of a box
_STEPS = ((1, 0), (-1, 0), (0, 1), (0, -1))
_TURNS = ((0, 2, 3), (1, 2, 3), (2, 0, 1), (3, 0, 1))  # ways to go on from each way, by their places in `_STEPS`
_BACK = (1, 0, 3, 2)

OUTSIDE = -1  # the room of what is in no device

_State = int  # four times a point, by number, and the way that leads to it
_NONE: _State = -1  # before the first state of a way


@dataclass(frozen=True, slots=True)
class Port:
    """Describe where a line may leave (or reach) a box: a point at its rim, the way out of it, and what it costs."""

    at: Point
    way: int
    cost: float = 0.0


def list_ports(box: Rect, preferred: Point | None = None, inset: int = 1, off_middle: float = 0.4) -> list[Port]:
    """Return the ports of a box, those in the middle of a side the cheapest, those not on the preferred side dearer."""
    found = []
    edges = (box.right, box.left, box.bottom, box.top)
    for way, step in enumerate(_STEPS):
        first, last = (box.left, box.right) if step[1] else (box.top, box.bottom)
        for at in range(first + inset, last - inset + 1):
            cost = off_middle * abs(at - (first + last) / 2) + (_OTHER_SIDE if preferred not in (None, step) else 0.0)
            found.append(Port((at, edges[way]) if step[1] else (edges[way], at), way, cost))
    return found


class Maze:
    """Find ways for lines on a grid; no line may enter or touch a wall, and the outermost points are walls."""

    def __init__(self, width: int, height: int, walls: Iterable[Rect], rooms: Sequence[Rect]) -> None:
        """Prepare a grid of so many points; only lines that end in one of `rooms` (devices) may be in it."""
        self._wide = width
        count = width * height
        self._rims: set[int] = set()
        self._beside = ([0] * count, [0] * count)  # how many lines run just beside a point, by axis
        self._heads = [0] * count  # how many lines end near a point of theirs
        self._taken: tuple[dict[int, set[int]], dict[int, set[int]]] = ({}, {})  # lines at a point, by axis
        self._step_cost = ([1.0] * count, [1.0] * count)  # of a step to a point, by axis
        self._bend_cost = [_BEND] * count
        self._free: dict[frozenset[int], bytearray] = {}
        self._room = [OUTSIDE] * count
        for number, room in enumerate(rooms):
            for at in self._list_points(room):
                self._room[at] = number
        solid = list(walls)
        self._walls = {at for wall in solid for at in self._list_points(wall)}
        self._near = {at for wall in solid for at in self._list_outline(_grow(wall, 1)) if 0 <= at < count}
        self.add_rims(rooms)
        self._walls |= self._list_outline(Rect(0, 0, width - 1, height - 1))

    def _list_points(self, box: Rect) -> Iterable[int]:
        return (x + self._wide * y for y in range(box.top, box.bottom + 1) for x in range(box.left, box.right + 1))

    def _list_outline(self, box: Rect) -> set[int]:
        across = {x + self._wide * y for x in range(box.left, box.right + 1) for y in (box.top, box.bottom)}
        return across | {x + self._wide * y for y in range(box.top, box.bottom + 1) for x in (box.left, box.right)}

    def add_rims(self, boxes: Iterable[Rect]) -> None:
        """Mark the outlines of boxes: lines may cross them, and should not run along them."""
        for box in boxes:
            self._rims |= self._list_outline(box)
            self._near |= self._list_outline(_grow(box, 1)) | self._list_outline(_grow(box, -1))
        for at in self._rims | self._near:
            self._weigh(at)

    def add(self, line: int, path: Sequence[Point]) -> None:
        """Mark the way of a line, by number, as taken."""
        steps = self._list_steps(path)
        for at, axis in steps:
            self._taken[axis].setdefault(at, set()).add(line)
        self._weigh_along(steps, 1)

    def remove(self, line: int, path: Sequence[Point]) -> None:
        """Unmark the way of a line."""
        steps = self._list_steps(path)
        for at, axis in steps:
            self._taken[axis][at].discard(line)
        self._weigh_along(steps, -1)

    def meets_another(self, line: int, path: Sequence[Point]) -> bool:
        """Return whether a line, by number, crosses another one or runs on it."""
        return any(self._find_lines(at) - {line} for at, _ in self._list_steps(path))

    def count_shared(self) -> int:
        """Return at how many points lines run on each other, or bend where another one is."""
        return sum(self._is_shared(at) for at in self._taken[0].keys() | self._taken[1].keys())

    def _is_shared(self, at: int) -> bool:
        across, along = (taken.get(at, set()) for taken in self._taken)
        return max(len(across), len(along)) > 1 or (len(across | along) > 1 and not across.isdisjoint(along))

    def _find_lines(self, at: int) -> set[int]:
        return self._taken[0].get(at, set()) | self._taken[1].get(at, set())

    def _weigh_along(self, steps: Sequence[tuple[int, int]], more: int) -> None:
        """Count one line `more` (or less) that takes these steps, and set what others cost there and just beside it."""
        for at in {at for at, _ in (*steps[:_HEADED], *steps[-_HEADED:])}:
            self._heads[at] += more
        for at, axis in steps:
            self._weigh(at)
            aside = (self._wide, 1)[axis]
            for near in (at - aside, at + aside):
                self._beside[axis][near] += more
                self._weigh(near)

    def _weigh(self, at: int) -> None:
        """Set what it costs to step on a point, and to bend there."""
        rim = _RIM if at in self._rims else _NEAR if at in self._near else 0.0
        taken = [bool(lines.get(at)) for lines in self._taken]
        cross = _CROSS + _HEAD * bool(self._heads[at])
        for axis in (0, 1):
            beside = _BESIDE * bool(self._beside[axis][at])
            self._step_cost[axis][at] = 1.0 + rim + beside + _SHARE * taken[axis] + cross * taken[1 - axis]
        self._bend_cost[at] = _BEND + _SHARE * any(taken)

    def _list_steps(self, path: Sequence[Point]) -> list[tuple[int, int]]:
        """List the points of a line with the axis (0 across, 1 up or down) along which it runs there."""
        found: dict[tuple[int, int], None] = {}
        for (x, y), (u, v) in pairwise(path):
            step = (u > x) - (u < x) + self._wide * ((v > y) - (v < y))
            for k in range(abs(u - x) + abs(v - y) + 1):
                found[x + self._wide * y + k * step, 0 if y == v else 1] = None
        return list(found)

    def route(
        self, starts: Sequence[Port], goals: Sequence[Port], rooms: frozenset[int], haste: float = HASTE
    ) -> list[Point] | None:
        """Return a cheap way from one of the ports to another, corner by corner; None where there is none.

        `rooms` are the devices that the line may run in, `OUTSIDE` among them where it may leave them. The search is A*
        over points with the way that leads to them; of several ways that cost the same it is the one found first.
        `haste` is how much an estimate counts of what is left of a way: more is quicker, and ways may be that longer.
        """
        free = self._find_free(rooms)
        entries = self._lead_out(starts, free)
        ends = {4 * (state >> 2) + _BACK[state & 3]: found for state, found in self._lead_out(goals, free).items()}
        across, down = self._measure_distances(goals, haste)
        wide, steps, bends = self._wide, self._step_cost, self._bend_cost
        ways = tuple(x + wide * y for x, y in _STEPS)
        queue: list[tuple[float, int, float, _State, _State]] = [
            (cost + across[(state >> 2) % wide] + down[(state >> 2) // wide], i, cost, state, _NONE)
            for i, (state, (cost, _)) in enumerate(entries.items())
        ]
        heapify(queue)
        came: dict[_State, _State] = {}
        best, straight = self._find_straight(starts, goals, free)
        found, serial = None, len(queue)
        while queue:
            guess, _, cost, state, before = heappop(queue)
            if guess >= best:
                break
            if state in came:
                continue
            came[state] = before
            at, way = state >> 2, state & 3
            for turned in _TURNS[way]:
                here = cost if turned == way else cost + bends[at]
                end = ends.get(4 * at + turned)
                if end is not None and here + end[0] < best:
                    best, found = here + end[0], (state, end[1])
                to = at + ways[turned]
                if free[to] and 4 * to + turned not in came:
                    more = here + steps[turned >> 1][to]
                    serial += 1
                    x, y = across[to % wide], down[to // wide]
                    heappush(queue, (more + x + y + (_BEND if x and y else 0), serial, more, 4 * to + turned, state))
        return straight if found is None else self._trace(*found, came, entries)

    def _find_straight(
        self, starts: Sequence[Port], goals: Sequence[Port], free: bytearray
    ) -> tuple[float, list[Point] | None]:
        """Return the cheapest straight way, with its cost, between ports so near that their stubs would overlap."""
        facing = {(port.at, port.way): port for port in goals}
        best, found = float("inf"), None
        for port in starts:
            (x, y), (across, down) = port.at, _STEPS[port.way]
            points: list[int] = []
            for k in range(1, 2 * _STUB + 1):
                end = x + k * across, y + k * down
                goal = facing.get((end, _BACK[port.way]))
                if goal is not None and len(points) >= _STUB:
                    cost = port.cost + goal.cost + sum(self._step_cost[port.way >> 1][at] for at in points)
                    best, found = min((best, found), (cost, [port.at, end]), key=lambda one: one[0])
                at = end[0] + self._wide * end[1]
                if not (0 <= at < len(free) and free[at]):
                    break
                points.append(at)
        return best, found

    def _find_free(self, rooms: frozenset[int]) -> bytearray:
        """Return which points a line between these rooms may use."""
        if rooms not in self._free:
            free = bytearray(room in rooms for room in self._room)
            for at in self._walls:
                free[at] = 0
            self._free[rooms] = free
        return self._free[rooms]

    def _lead_out(self, ports: Sequence[Port], free: bytearray) -> dict[_State, tuple[float, Port]]:
        """Return the points that straight stubs out of a box lead to, each with the cheapest port and its cost."""
        found: dict[_State, tuple[float, Port]] = {}
        for port in ports:
            (x, y), (across, down) = port.at, _STEPS[port.way]
            points = [x + k * across + self._wide * (y + k * down) for k in range(1, _STUB + 1)]
            if not all(0 <= at < len(free) and free[at] for at in points):
                continue
            cost = port.cost + sum(self._step_cost[port.way >> 1][at] for at in points)
            cost += _SHARE if self._find_lines(x + self._wide * y) else 0.0
            state = 4 * points[-1] + port.way
            if state not in found or cost < found[state][0]:
                found[state] = cost, port
        return found

    def _measure_distances(self, goals: Sequence[Port], haste: float) -> tuple[list[float], list[float]]:
        """Return how far each column, and each row, is from the box of the goals, made longer by `haste`."""
        xs, ys = zip(*(port.at for port in goals), strict=True)
        high = len(self._room) // self._wide
        across = [haste * max(min(xs) - x - _STUB, x - max(xs) - _STUB, 0) for x in range(self._wide)]
        return across, [haste * max(min(ys) - y - _STUB, y - max(ys) - _STUB, 0) for y in range(high)]

    def _trace(
        self, state: _State, end: Port, came: Mapping[_State, _State], entries: Mapping[_State, tuple[float, Port]]
    ) -> list[Point]:
        """Return the corners of a way, walked back from the state before its end."""
        points, first = [end.at], state
        while state != _NONE:
            points.append(((state >> 2) % self._wide, (state >> 2) // self._wide))
            first, state = state, came[state]
        points.append(entries[first][1].at)
        return drop_middles(points[::-1])


def _grow(box: Rect, by: int) -> Rect:
    return Rect(box.left - by, box.top - by, box.right + by, box.bottom + by)


def drop_middles(points: Sequence[Point]) -> list[Point]:
    """Return the corners of a line: its points without those on a straight stretch.

    >>> drop_middles([(0, 0), (1, 0), (2, 0), (2, 1)])
    [(0, 0), (2, 0), (2, 1)]
    """
    kept: list[Point] = []
    for point in points:
        if len(kept) > 1 and (kept[-2][0] == kept[-1][0] == point[0] or kept[-2][1] == kept[-1][1] == point[1]):
            kept[-1] = point
        elif not kept or point != kept[-1]:
            kept.append(point)
    return kept
