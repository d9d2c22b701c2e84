"""List the ways to break devices, in their order, into rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product

from viz.packing.parts import Parts

_FOLDS = (1, 2, 3)  # columns into which layers are broken
_TURNED_ROWS = 3  # rows of devices: of so many, each may have a direction of its own


@dataclass(frozen=True, slots=True)
class Plan:
    """Choose a layout: the devices of each row, and whether the boxes of a row follow each other downwards.

    `widens` says that rows may become wider, so that all tags between two of them are in one strip. Where boxes of a
    device follow each other in many layers, these are broken into `folds` columns or lines. A plan that `is_tight` has
    less room between layers.
    """

    rows: tuple[tuple[int, ...], ...]
    down: tuple[bool, ...]
    widens: bool = False
    folds: int = 1
    is_tight: bool = False


def list_plans(parts: Parts, is_tight: bool = False) -> Iterator[Plan]:
    """Yield ways to lay out devices in rows of about one length, or so but for the first in a row of its own.

    Where it `is_tight` each is tried with layers broken into columns, too.
    """
    count = len(parts.devices)
    shapes = dict.fromkeys(_cut(0, count, rows) for rows in range(1, count + 1))
    shapes |= dict.fromkeys(((0,), *_cut(1, count, rows)) for rows in range(1, count))
    for rows in shapes or {(): None}:
        if not _keeps_frames(parts, rows):
            continue
        one = [(True,) * len(rows), (False,) * len(rows)]
        turned = list(product((True, False), repeat=len(rows)) if len(rows) <= _TURNED_ROWS else one)
        yield from (
            Plan(rows, down, widens, folds, is_tight)
            for folds in (_FOLDS if is_tight else (1,))
            for widens in (False, True)[: len(rows)]
            for down in turned
        )


def _cut(first: int, count: int, rows: int) -> tuple[tuple[int, ...], ...]:
    """Return the numbers from `first` up to `count` in rows of about the same length, the first ones the longer.

    >>> _cut(1, 6, 3)
    ((1, 2), (3, 4), (5,))
    """
    each, more = divmod(count - first, rows)
    ends = [first + each * row + min(row, more) for row in range(rows + 1)]
    return tuple(tuple(range(*pair)) for pair in pairwise(ends))


def _keeps_frames(parts: Parts, rows: Sequence[Sequence[int]]) -> bool:
    """Return whether rows of several frames have all devices of each, so that these can stand side by side."""
    sizes = Counter(device.frame for device in parts.devices)
    for row in rows:
        own = Counter(parts.devices[i].frame for i in row)
        if len(own) > 1 and ("" in own or any(own[frame] < sizes[frame] for frame in own)) and parts.frames:
            return False
    return True
