"""Choose how to lay a figure out in rows of devices: of all plans the one that fills its page best."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from viz.packing.block import FOLDED
from viz.packing.grid import Size
from viz.packing.parts import Arrangement, Parts
from viz.packing.plans import Plan, list_plans
from viz.packing.rows import RowLayout
from viz.packing.wiring import Wiring, route_wires

_ROOMS = (0, 1, 2, 3, 5)  # units that are added to gaps, in turn, until lines have lanes of their own
_TRIED = 3  # plans whose lines are routed
_MANY = 40  # lines: of a figure with more of them only the best plan is, since each takes a second
_LINES_AROUND = 1  # units that an estimate leaves around everything
_FITTED = 4  # times that a plan is made to fit its page
_EMPTY = 0.25  # of the drawing: a plan that leaves more outside of all boxes is rated worse
_EMPTY_COST = 3.0
_SHARED_COST, _LINE_COST, _UNITS_A_CORNER = 50.0, 0.1, 40.0  # what lines cost: those on each other, corners, length


def pack_parts(
    parts: Parts,
    rate: Callable[[Size], float],
    fit: Callable[[Size], Size],
    rounded: frozenset[str] = frozenset(),
    is_tight: bool = False,
) -> Wiring:
    """Return the layout of a figure, all sizes in units.

    `rate` says how bad a size is, and `fit` how large a drawing is to be made that needs a size at least, 0 for any. Of
    the best rated plans it is the one with the shortest lines and the fewest corners. Where it `is_tight`,
    for a page of a given size, boxes are nearer to each other, and those of a device may be broken into columns.
    """

    def rate_arrangement(found: Arrangement) -> float:
        return rate(found.size) * (1 + _EMPTY_COST * max(measure_empty(found) - _EMPTY, 0))

    def rate_plan(plan: Plan) -> float:
        layout = RowLayout(parts, plan)
        return rate_arrangement(layout.place(fit(layout.measure())))

    is_quick = len(parts.wires) <= _MANY
    found = [(rate_arrangement(wiring.arrangement) * (1 + _weigh_lines(wiring)), i, wiring)
             for i, plan in enumerate(sorted(_list_folded(parts, is_tight), key=rate_plan)[: _TRIED if is_quick else 1])
             if (wiring := _wire(parts, plan, fit, rounded)) is not None]  # fmt: skip
    assert found, "with enough room each line has a way"
    return min(found, key=lambda one: one[:2])[2]


def _list_folded(parts: Parts, is_tight: bool) -> list[Plan]:
    """Return the plans without those that break layers into columns where none has so many."""
    longest = max((len(device.nodes) for device in parts.devices), default=0)
    return [plan for plan in list_plans(parts, is_tight) if plan.folds == 1 or longest >= plan.folds * FOLDED]


def estimate_size(parts: Parts, rate: Callable[[Size], float], is_tight: bool = False) -> Size:
    """Return about how large the layout of a figure is: that of the best rated plan, with room for lines around it."""
    sizes = [RowLayout(parts, plan).measure() for plan in list_plans(parts, is_tight)]
    around = 2 * _LINES_AROUND if len(parts.devices) > 1 else 0
    return min(((wide + around, high + around) for wide, high in sizes), key=rate)


def measure_empty(found: Arrangement) -> float:
    """Return the share of a drawing that is in no task, device, bar or tag."""
    frames = list(found.frames.values())
    rooms = [*frames, *(room for room in found.devices.values() if not any(room.overlaps(frame) for frame in frames))]
    bars = [box for box in found.nodes.values() if not any(box.overlaps(room) for room in rooms)]
    boxes = [*rooms, *bars, *found.tags.values()]
    area = found.size[0] * found.size[1]
    return 1 - sum(box.size[0] * box.size[1] for box in boxes) / area if area else 0.0


def _wire(parts: Parts, plan: Plan, fit: Callable[[Size], Size], rounded: frozenset[str]) -> Wiring | None:
    """Return the lines of a plan with the least room in which none runs on another, else those that share least."""
    tried = []
    for room in _ROOMS:
        wiring = _wire_with(parts, plan, room, fit, rounded)
        if wiring is not None:
            if not wiring.shared:
                return wiring
            tried.append(wiring)
    return min(tried, key=lambda one: one.shared) if tried else None


def _wire_with(
    parts: Parts, plan: Plan, room: int, fit: Callable[[Size], Size], rounded: frozenset[str]
) -> Wiring | None:
    """Return the lines of a plan as large as is wished: lines beside all devices are made up for by smaller devices."""
    down = {parts.devices[i].id: plan.down[r] for r, row in enumerate(plan.rows) for i in row}
    layout = RowLayout(parts, plan, room)
    natural = layout.measure()
    wanted = fill = fit(natural)
    for _ in range(_FITTED):
        wiring = route_wires(parts, layout.place(fill), down, rounded)
        if wiring is None:
            return None
        size = wiring.arrangement.size
        over = [max(is_ - want, 0) if want else 0 for is_, want in zip(size, wanted, strict=True)]
        if not any(over):
            break
        fill = fill[0] - over[0], fill[1] - over[1]
        if fill[0] < natural[0] or (fill[1] < natural[1] and over[1]):
            wanted = fill = fit(size)
    return wiring


def _weigh_lines(wiring: Wiring) -> float:
    """Return how much worse lines make a drawing, as a share: corners and length by box, and what runs on another."""
    lines = list(wiring.lines.values())
    length = sum(abs(x - u) + abs(y - v) for path in lines for (x, y), (u, v) in pairwise(path))
    corners = sum(len(path) - 2 for path in lines)
    boxes = max(len(wiring.arrangement.nodes), 1)
    return (length / _UNITS_A_CORNER + corners) / boxes * _LINE_COST + _SHARED_COST * wiring.shared
