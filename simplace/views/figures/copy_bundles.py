"""Bundle the copies of a step by the devices that they go between, as the lines of an overview."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from simplace.partition.transfers import Copy
from simplace.result import Placed
from simplace.views.figures.alike_devices import Alike

_MOST_APART = 8  # lines for boxes that no other line would reach: more would hide what devices send each other


@dataclass(frozen=True, slots=True)
class Bundle:
    """Record of the copies between two drawn devices: those `there`, at least one, and those `back`."""

    there: list[Copy]
    back: list[Copy]


def bundle_copies(placed: Placed, alike: Alike) -> list[Bundle]:
    """Return the copies of tensors by the pair of drawn devices that they go between, from the first one on if both.

    What a session fetches, or is fed, may be on a device where nothing runs.
    """
    stands, order = alike.stands_for, {device.name: i for i, device in enumerate(placed.placement.devices)}
    groups: dict[tuple[str, str], list[Copy]] = {}
    for copy in placed.step_copies:
        if copy.source in stands and copy.target in stands:
            groups.setdefault((stands[copy.source], stands[copy.target]), []).append(copy)
    return [
        Bundle(there, groups.get((target, source), []))
        for (source, target), there in groups.items()
        if (target, source) not in groups or order[source] < order[target]
    ]


def set_apart(bundles: list[Bundle], alike: Alike, joined: set[int]) -> tuple[list[Bundle], list[Bundle]]:
    """Return bundles without the copies of boxes that no line would reach, and bundles of these copies by their boxes.

    `joined` are the boxes that other lines reach; the only box of a device is reached by the lines of the device. So a
    loss that only goes to another device and back is seen to do so. Where that takes many lines, all copies stay with
    their devices.
    """
    count = Counter(box.device for box in alike.boxes)
    reached = joined | {box for bundle in bundles for box in _list_reached(bundle, alike)}
    lone = {i for i, box in enumerate(alike.boxes) if count[box.device] > 1} - reached
    left: list[Bundle] = []
    apart: dict[tuple[int, int], list[Copy]] = {}
    for bundle in bundles:
        for copy in (*bundle.there, *bundle.back):
            ends = _name_ends(copy, alike)
            if not lone.isdisjoint(ends):
                apart.setdefault(ends, []).append(copy)
        there, back = (
            [copy for copy in some if lone.isdisjoint(_name_ends(copy, alike))] for some in (bundle.there, bundle.back)
        )
        if there or back:
            left.append(Bundle(there, back) if there else Bundle(back, there))
    return (left, [Bundle(copies, []) for copies in apart.values()]) if len(apart) <= _MOST_APART else (bundles, [])


def _list_reached(bundle: Bundle, alike: Alike) -> Iterator[int]:
    """Yield the boxes at which the line of a bundle may start and end."""
    if not bundle.back:
        yield from (pick_heaviest(ends) for ends in weigh_ends(bundle.there, alike) if is_one_box(ends))


def _name_ends(copy: Copy, alike: Alike) -> tuple[int, int]:
    """Return the boxes that a copy leaves, and reaches, the first of several; -1 where a session feeds or fetches."""
    sources, targets = weigh_ends([copy], alike)
    one, other = (pick_heaviest(ends) if any(ends.values()) else -1 for ends in (sources, targets))
    return one, other


def is_one_box(ends: Counter[int]) -> bool:
    """Return whether all copies leave, or reach, the same box."""
    return len(ends) == 1 and all(ends.values())


def weigh_ends(bundle: list[Copy], alike: Alike) -> tuple[Counter[int], Counter[int]]:
    """Return how many bytes leave, and reach, each box; one more for each copy, whose size may be unknown.

    What a session feeds leaves no box, what it only fetches reaches none, and what a device only passes on to others of
    its task leaves none there: any box of the device has 0 bytes then.
    """
    sources: Counter[int] = Counter()
    targets: Counter[int] = Counter()
    for copy in bundle:
        size = (copy.size or 0) + 1
        if copy.producer >= 0:
            box = alike.box_of[copy.producer]
            is_there = alike.boxes[box].device == alike.stands_for[copy.source]
            sources[box if is_there else _first_box(alike, copy.source)] += size if is_there else 0
        for box in {alike.box_of[node] for node in copy.consumers}:
            targets[box] += size
    for ends, device in ((sources, bundle[0].source), (targets, bundle[0].target)):
        if not ends:
            ends[_first_box(alike, device)] = 0
    return sources, targets


def _first_box(alike: Alike, device: str) -> int:
    """Return a box that is drawn on a device."""
    return next(i for i, box in enumerate(alike.boxes) if box.device == alike.stands_for[device])


def pick_heaviest(ends: Counter[int]) -> int:
    """Return the box with the most bytes, the first of equal ones."""
    return min(ends, key=lambda box: (-ends[box], box))
