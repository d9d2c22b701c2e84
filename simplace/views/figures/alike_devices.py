"""Choose the boxes of a figure: devices whose boxes are alike are drawn as one, where there are too many to be read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from simplace.placement.placement import Placement
from simplace.program.known_names import strip_number
from simplace.result import Placed
from simplace.views.figures.boxes import Box, group_into_boxes

_BETWEEN = ("/", ", ", " … ")  # names in the text of a box
_NAMES = re.compile(f"({'|'.join(_BETWEEN)})")
_DRAWN = 9  # devices that a figure takes
_TASKS = 4  # tasks: of so many, devices are drawn as one only within each
_BOXES_EACH = 6  # where a figure has fewer boxes for each device, those alike are drawn as one
FEW_ALIKE = 3  # devices: from so many on, those alike are
_SHARES = (2, 4, 8)  # of the boxes that all devices would have, if each had as many as a figure may: tried in turn


@dataclass(frozen=True, slots=True)
class Alike:
    """Record of the boxes of a figure, the box number of every drawn node, and the devices that one stands for.

    `drawn` are the nodes that are not drawn with another, those of all devices.
    """

    boxes: list[Box]
    box_of: dict[int, int]
    devices: dict[str, tuple[str, ...]]
    drawn: frozenset[int]

    @property
    def stands_for(self) -> dict[str, str]:
        """Return, for each device, the one that is drawn in its place."""
        return {device: first for first, family in self.devices.items() for device in family}


def count_fold(placed: Placed, limit: int, each: int = 1) -> int:
    """Return from how many devices on those alike are drawn as one, in a figure of at most `limit` boxes.

    It is three, but two of very many, or where there are not so many boxes for `each`.
    """
    devices = len({decision.device for decision in placed.placement.decisions.values()})
    return FEW_ALIKE if devices <= _DRAWN and devices * each <= limit else 2


def figure_boxes(placed: Placed, limit: int, fold: int = 0) -> Alike:
    """Return at most `limit` boxes, or one a device where these are more.

    Each device is drawn where there are few, and where `limit` leaves some boxes to each or all ops are drawn one by
    one. Else of those alike, from `fold` on or as many as `count_fold` says, one is drawn, with as much
    detail as there is room for then.
    """
    devices = len({decision.device for decision in placed.placement.decisions.values()})
    whole = _fold(placed, limit, least=devices + 1)
    if devices <= _DRAWN and (devices * _BOXES_EACH <= limit or len(whole.boxes) == len(whole.drawn)):
        return whole
    found, fold = whole, fold or count_fold(placed, limit)
    for room in (*(limit * devices // share for share in _SHARES), limit, 1):
        found = _fold(placed, room, fold)
        if len(found.boxes) <= limit:
            break
    return found


def _fold(placed: Placed, room: int, least: int) -> Alike:
    copied = frozenset((copy.source, copy.target) for copy in placed.crossing)
    made = group_into_boxes(placed.placement, room)
    return fold_alike(placed.placement, *made, most=1, least=least, copied=copied)


def fold_alike(
    placement: Placement,
    made: list[Box],
    box_of: Mapping[int, int],
    most: int = FEW_ALIKE - 1,
    least: int = FEW_ALIKE,
    copied: frozenset[tuple[str, str]] = frozenset(),
) -> Alike:
    """Return boxes in which one device stands for all whose boxes have the same labels, numbers in names aside.

    Nothing is folded where the figure has at most `most` devices, nor are fewer than `least` devices, nor one that has
    something `copied` to another of them (pairs of source and target), as the first of a task to its others. Nodes of
    the others count as nodes of the first one's boxes.
    """
    own: dict[str, list[int]] = {}
    for number, box in sorted(enumerate(made), key=lambda pair: _get_signature(pair[1])):
        own.setdefault(box.device, []).append(number)
    own = {box.device: own[box.device] for box in made}
    families: dict[tuple[object, ...], list[str]] = {}
    for device, numbers in own.items():
        kind = _get_kind(placement, device) if device else ()
        families.setdefault((kind, *(_get_signature(made[i]) for i in numbers)), []).append(device)
    if len(own) <= most or not all(own):
        families = {}
    alike = (_leave_senders_out(family, copied) for family in families.values())
    folded = [family for family in alike if len(family) >= least]
    single = set(own).difference(*folded)
    families = {(family[0],): family for family in [*folded, *([device] for device in own if device in single)]}
    stands = {device: family[0] for family in families.values() for device in family}
    goal = {i: own[stands[device]][k] for device, numbers in own.items() for k, i in enumerate(numbers)}
    kept = {number: i for i, number in enumerate(sorted(set(goal.values())))}
    return Alike(
        [made[number] for number in kept],
        {node: kept[goal[number]] for node, number in box_of.items()},
        {family[0]: tuple(family) for family in families.values()},
        frozenset(node for box in made for node in box.nodes),
    )


def _leave_senders_out(family: list[str], copied: frozenset[tuple[str, str]]) -> list[str]:
    """Return the devices of a family without those that copy something to another of it."""
    return [device for device in family if not any((device, other) in copied for other in family)]


def _get_kind(placement: Placement, device: str) -> tuple[object, ...]:
    """Return what devices drawn as one have in common: their type, and the task where there are few."""
    spec = placement.devices.by_name[device].spec
    tasks = {(one.spec.job, one.spec.replica, one.spec.task) for one in placement.devices}
    return (spec.type, spec.job, spec.replica, spec.task) if len(tasks) <= _TASKS else (spec.type,)


def _get_signature(box: Box) -> tuple[str, str, str, int]:
    return _strip_numbers(box.label), _strip_numbers(box.detail), box.kind, len(box.nodes)


def _strip_numbers(text: str) -> str:
    """Return a box's text with each of the names in it as it would be without a number.

    >>> _strip_numbers("tower_1/dense_2, gradients"), _strip_numbers("conv_1 … conv_4")
    ('tower/dense, gradients', 'conv … conv')
    """
    return "".join(part if part in _BETWEEN else strip_number(part) for part in _NAMES.split(text))
