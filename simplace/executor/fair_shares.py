"""Divide the bandwidth of links among the copies that pass them at once: max-min fairly.

Mirrors D. Bertsekas and R. Gallager, Data Networks, second edition, section 6.5.2: rates are max-min fair if none can
grow but at the cost of one that is no larger. Progressive filling finds them: all rates grow alike, until a copy is as
fast as it would be alone, or a link that it passes is full.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import inf
from typing import NamedTuple


class Demand(NamedTuple):
    """Record of what a copy wants: its rate where it is alone, and the links that it passes, by number."""

    limit: float
    links: tuple[int, ...]


class FairRate(NamedTuple):
    """Record of what a copy gets: its rate, and the full link that keeps it from more, -1 where none does."""

    rate: float
    full: int = -1


def share_fairly(demands: Sequence[Demand], capacities: Sequence[float]) -> list[FairRate]:
    """Return a rate for each demand, in the unit of limits and capacities; of links full at once the first is named.

    >>> [each.rate for each in share_fairly([Demand(9.0, (0,)), Demand(9.0, (0, 1)), Demand(2.0, (1,))], [12.0, 5.0])]
    [9.0, 3.0, 2.0]
    """
    found: dict[int, FairRate] = {}
    left, growing = list(capacities), list(range(len(demands)))
    while growing:
        counts = Counter(link for i in growing for link in demands[i].links)
        fixed = _fix_next(demands, growing, {link: left[link] / counts[link] for link in sorted(counts)})
        for i, fair in fixed.items():
            for link in demands[i].links:
                left[link] = max(0.0, left[link] - fair.rate)
        found |= fixed
        growing = [i for i in growing if i not in fixed]
    return [found[i] for i in range(len(demands))]


def _fix_next(demands: Sequence[Demand], growing: Sequence[int], levels: Mapping[int, float]) -> dict[int, FairRate]:
    """Return the rates that grow no more: those as fast as alone; where there is none, those of links that are full.

    `levels` has for each link the rate at which it is full if all that pass it have the same.
    """
    level = min(levels.values(), default=inf)
    if alone := {i: FairRate(demands[i].limit) for i in growing if demands[i].limit <= level}:
        return alone
    full = [link for link, one in levels.items() if one == level]
    passing = {i: next((link for link in full if link in demands[i].links), -1) for i in growing}
    return {i: FairRate(level, link) for i, link in passing.items() if link >= 0}
