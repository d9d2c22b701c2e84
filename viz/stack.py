"""Stack steps over time: one amount above the other, cut into the columns that a drawing has room for."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from math import ceil, floor
from typing import NamedTuple

Points = tuple[tuple[float, float], ...]
Amounts = tuple[float, ...]


class Piece(NamedTuple):
    """Name a stretch of a band: from column `first` to before `last`, between two heights."""

    first: int
    last: int
    low: float
    high: float


def add_up(bands: Sequence[Points]) -> list[tuple[float, Amounts]]:
    """Return the amounts of all bands from each time on; of several points of one time the first come together first.

    >>> add_up([((0, 1), (2, 3)), ((1, 5), (1, 4))])
    [(0, (1, 0.0)), (1, (1, 5)), (1, (1, 4)), (2, (3, 4))]
    """
    events: dict[tuple[float, int], list[tuple[int, float]]] = {}
    for number, points in enumerate(bands):
        turn, before = 0, -1.0
        for time, amount in points:
            turn = turn + 1 if time == before else 0
            before = time
            events.setdefault((time, turn), []).append((number, amount))
    now = [0.0] * len(bands)
    steps = []
    for (time, _), changes in sorted(events.items()):
        for number, amount in changes:
            now[number] = amount
        steps.append((time, tuple(now)))
    return steps


def cut_columns(bands: Sequence[Points], end: float, count: int) -> list[Amounts]:
    """Cut time into `count` columns of equal width; each shows the amounts of the moment at which their sum is largest.

    A peak too short for a column of its own still fills one.

    >>> cut_columns([((0, 1), (1, 5), (1.1, 2))], 4, 4)
    [(1,), (5,), (2,), (2,)]
    """
    steps = add_up(bands)
    found: list[Amounts] = [(0.0,) * len(bands)] * count
    sums = [0.0] * count
    for (start, amounts), stop in zip(steps, [time for time, _ in steps[1:]] + [end], strict=False):
        first = min(floor(start / end * count), count - 1)
        total = sum(amounts)
        for i in range(first, max(min(ceil(stop / end * count), count), first + 1)):
            if total > sums[i]:
                found[i], sums[i] = amounts, total
    return found


def find_pieces(columns: Sequence[Amounts], band: int, grain: float) -> list[Piece]:
    """Return the pieces of a band, its heights rounded to a multiple of `grain`; where it has none, there is no piece.

    >>> find_pieces([(1, 2), (1, 2), (4, 2)], 1, 1.0)
    [Piece(first=0, last=2, low=1.0, high=3.0), Piece(first=2, last=3, low=4.0, high=6.0)]
    """
    found: list[Piece] = []
    for i, amounts in enumerate(columns):
        below = sum(amounts[:band])
        low, high = (round(amount / grain) * grain for amount in (below, below + amounts[band]))
        if high <= low:
            continue
        if found and found[-1][1:] == (i, low, high):
            found[-1] = found[-1]._replace(last=i + 1)
        else:
            found.append(Piece(i, i + 1, low, high))
    return found


def split_pieces(pieces: Sequence[Piece], column: int) -> list[Piece]:
    """Return pieces without one column, at which a text is not to stand.

    >>> split_pieces([Piece(0, 4, 0, 9)], 2)
    [Piece(first=0, last=2, low=0, high=9), Piece(first=3, last=4, low=0, high=9)]
    """
    found = []
    for one in pieces:
        if one.first <= column < one.last:
            halves = one._replace(last=column), one._replace(first=column + 1)
            found += [half for half in halves if half.first < half.last]
        else:
            found.append(one)
    return found


def find_room(pieces: Sequence[Piece], wide: int, high: float) -> tuple[float, float] | None:
    """Return the middle of the highest room in a band for a text of `wide` columns and a height, None for none.

    >>> find_room([Piece(0, 4, 0, 9), Piece(4, 9, 2, 9)], 4, 5)
    (2.0, 4.5)
    >>> find_room([Piece(0, 4, 0, 9), Piece(6, 9, 2, 9)], 5, 5) is None
    True
    """
    best, where = high, None
    firsts, lasts = [one.first for one in pieces], [one.last for one in pieces]
    for start in _list_starts(pieces, wide):
        inside = pieces[bisect_right(lasts, start) : bisect_left(firsts, start + wide)]
        if sum(min(one.last, start + wide) - max(one.first, start) for one in inside) < wide:
            continue
        low, top = max(one.low for one in inside), min(one.high for one in inside)
        if top - low > best or (top - low == best and where is None):
            best, where = top - low, (start + wide / 2, (low + top) / 2)
    return where


def _list_starts(pieces: Sequence[Piece], wide: int) -> Iterator[int]:
    """Yield where a text may begin: in the middle of a piece, the widest first, or so that it touches an end of one."""
    for one in sorted(pieces, key=lambda piece: piece.first - piece.last):
        yield max((one.first + one.last - wide) // 2, 0)
    yield from sorted({max(start, 0) for one in pieces for start in (one.first, one.last - wide)})
