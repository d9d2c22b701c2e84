"""Divide the bandwidth of links among the copies that pass them at once: max-min fairly.

Mirrors D. Bertsekas and R. Gallager, Data Networks, second edition, section 6.5.2: rates are max-min fair if none can
grow but at the cost of one that is no larger. Progressive filling finds them: all rates grow alike, until a copy is as
fast as it would be alone, or a link that it passes is full.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    left = dict(enumerate(capacities))
    passing = {link: [i for i, demand in enumerate(demands) if link in demand.links] for link in left}
    while len(found) < len(demands):
        open_to = {link: sum(i not in found for i in passing[link]) for link in left}
        levels = {link: left[link] / count for link, count in open_to.items() if count}
        full = min(levels, key=lambda link: levels[link], default=-1)
        fixed = _fix_next(demands, found, levels, full)
        for i, fair in fixed.items():
            for link in demands[i].links:
                left[link] = max(0.0, left[link] - fair.rate)
        found |= fixed
    return [found[i] for i in range(len(demands))]


def _fix_next(
    demands: Sequence[Demand], found: Mapping[int, FairRate], levels: Mapping[int, float], full: int
) -> dict[int, FairRate]:
    """Return the rates that no longer grow: those as fast as alone; where there is none, those of the full link."""
    level = levels.get(full, float("inf"))
    growing = [i for i in range(len(demands)) if i not in found]
    alone = {i: FairRate(demands[i].limit) for i in growing if demands[i].limit <= level}
    return alone or {i: FairRate(level, full) for i in growing if full in demands[i].links}
