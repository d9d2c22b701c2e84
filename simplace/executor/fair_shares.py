"""Divide the bandwidth of links among the copies and collectives that pass them at once: max-min fairly.

Mirrors D. Bertsekas and R. Gallager, Data Networks, second edition, section 6.5.2: rates are max-min fair if none can
grow but at the cost of one that is no larger. Progressive filling finds them: all rates grow alike, until one is as
fast as it would be alone, or a link that it passes is full. The rate of a collective is that of each of its members,
several of which may pass a link.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import inf
from typing import NamedTuple


class Demand(NamedTuple):
    """Record of what a copy or a collective wants: its rate alone, and how often its bytes pass each link."""

    limit: float
    loads: Mapping[int, float]


class FairRate(NamedTuple):
    """Record of what it gets: its rate, and the full link that keeps it from more, -1 where none does."""

    rate: float
    full: int = -1


def share_fairly(demands: Sequence[Demand], capacities: Sequence[float]) -> list[FairRate]:
    """Return a rate for each demand, in the unit of limits and capacities; of links full at once the first is named.

    >>> demands = [Demand(9.0, {0: 1}), Demand(9.0, {0: 1, 1: 1}), Demand(1.0, {1: 2})]
    >>> [each.rate for each in share_fairly(demands, [12.0, 5.0])]
    [9.0, 3.0, 1.0]
    """
    found: dict[int, FairRate] = {}
    left, growing = list(capacities), list(range(len(demands)))
    while growing:
        loads: dict[int, float] = defaultdict(float)
        for i in growing:
            for link, load in demands[i].loads.items():
                loads[link] += load
        fixed = _fix_next(demands, growing, {link: left[link] / loads[link] for link in sorted(loads)})
        for i, fair in fixed.items():
            for link, load in demands[i].loads.items():
                left[link] = max(0.0, left[link] - load * fair.rate)
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
    passing = {i: next((link for link in full if link in demands[i].loads), -1) for i in growing}
    return {i: FairRate(level, link) for i, link in passing.items() if link >= 0}
