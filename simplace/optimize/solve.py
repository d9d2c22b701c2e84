"""Solve a placement problem within a time or a number of rounds."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from simplace.optimize.objectives import ObjectiveName
from simplace.optimize.problem import Placed, PlacementProblem
from simplace.optimize.search import Judge, search_placements


def ignore(best: Placed) -> None:
    """Report nothing."""


def solve(
    problem: PlacementProblem,
    objective: ObjectiveName,
    *,
    seconds: float | None = 10.0,
    rounds: int | None = None,
    seed: int = 0,
    report: Callable[[Placed], None] = ignore,
    judge: Judge | None = None,
) -> Placed:
    """Return the best placement found until the time is over, or the rounds are done, or it is a proven optimum.

    At least one round is done. The answer depends on the seed and the number of rounds alone; time only ends the
    search. `report` receives the best so far after each round. For `judge` see `search_placements`. Raises
    NoPlacementError where nothing keeps the limits.
    """
    end = None if seconds is None else monotonic() + seconds
    best: Placed | None = None
    for number, best in enumerate(search_placements(problem, objective, seed=seed, judge=judge), start=1):
        report(best)
        if number == rounds or (end is not None and monotonic() >= end):
            break
    assert best, "a search yields or raises"
    return best
