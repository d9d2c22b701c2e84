"""The search for a placement, round by round: immediate answers first, then better ones until it is stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import inf
from random import Random
from typing import TypedDict

from simplace.errors import NoPlacementError
from simplace.optimize.grouped import group_problem
from simplace.optimize.objectives import OBJECTIVES, ObjectiveName
from simplace.optimize.problem import PlacementProblem, Solution
from simplace.optimize.strategies import STRATEGIES

Judge = Callable[[Sequence[int]], float]  # from the device of each node to a value; the smaller the better
EXACT = 1e-9  # relative: an answer so close to its bound is a proven optimum

PATIENCE = 100  # candidates of which none keeps the limits


class SearchKeywords(TypedDict, total=False):
    """Type the arguments of `search_placements` for functions that pass them on."""

    seed: int
    judge: Judge | None


def search_placements(
    problem: PlacementProblem, objective: ObjectiveName, *, seed: int = 0, judge: Judge | None = None
) -> Iterator[Solution]:
    """Yield the best placement so far after each round, a few tens of milliseconds in most cases.

    Ends when the best is a proven optimum, else never; the same seed yields the same. One accelerator for all, and the
    CPU for all, are among the candidates. A `judge` values the candidates instead of the objective, which guides the
    search all the same; the bound is then 0. Raises NoPlacementError where no candidate keeps the limits.
    """
    grouped = group_problem(problem)
    if not all(grouped.allowed):
        stuck = next(group for group, devices in enumerate(grouped.allowed) if not devices)
        raise NoPlacementError(f"no device can hold the group of node {grouped.members[stuck][0]}")
    evaluate = judge or (lambda device_of: OBJECTIVES[objective].evaluate(problem, device_of))
    bound = 0.0 if judge else OBJECTIVES[objective].bound(grouped)
    best: Solution | None = None
    seen: set[tuple[int, ...]] = set()
    fruitless = 0
    for method, candidate in STRATEGIES[objective](grouped, Random(seed)):
        device_of = grouped.spread(candidate) if candidate is not None else ()
        if candidate is not None and device_of not in seen and problem.keeps_limits(device_of):
            seen.add(device_of)
            value = evaluate(device_of)
            if value < (best.value if best else inf):
                best = Solution(device_of, value, min(bound, value), method)
        if best:
            yield best
            if best.value <= best.bound * (1 + EXACT):
                return
        elif (fruitless := fruitless + 1) == PATIENCE:
            break
    if best is None:
        blocks = " and in which no path comes back to an accelerator" if objective == "latency" else ""
        raise NoPlacementError(f"no placement was found that keeps the memory of the accelerators{blocks}")
