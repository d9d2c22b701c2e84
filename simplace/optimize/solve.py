"""Solve a placement problem within a time or a number of rounds."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Unpack

from simplace.optimize.objectives import ObjectiveName
from simplace.optimize.problem import PlacementProblem, Solution
from simplace.optimize.proof import Proof
from simplace.optimize.search import SearchKeywords, search_placements

FIRST = 0.1  # of the time is for the search alone, so that a proof begins with a good placement
PROVEN = 1e-4


def ignore(best: Solution) -> None:
    """Report nothing."""


def solve(
    problem: PlacementProblem,
    objective: ObjectiveName,
    *,
    seconds: float | None = 10.0,
    rounds: int | None = None,
    report: Callable[[Solution], None] = ignore,
    prove: bool = False,
    **search: Unpack[SearchKeywords],
) -> Solution:
    """Return the best placement found until the time is over, or the rounds are done, or it is a proven optimum.

    At least one round is done. The answer depends on the seed and the number of rounds alone; time only ends the
    search. `report` receives the best so far after each round. For `seed` and `judge` see `search_placements`.

    With `prove`, CP-SAT (`pip install 'simplace[prove]'`) runs beside the search on the other cores, for what it finds
    and for its bound; the answer then depends on how fast it is, `seconds` has to be given, and a gap of 0.01 % ends
    the search too. It knows max_load and latency; a makespan has the bound that counting gives.

    Raises NoPlacementError where nothing keeps the limits, MissingExtraError where OR-Tools is not installed.
    """
    begin = monotonic()
    end = None if seconds is None else begin + seconds
    proof: Proof | None = None
    best: Solution | None = None
    try:
        for number, best in enumerate(search_placements(problem, objective, **search), start=1):
            if (
                prove
                and objective != "makespan"
                and proof is None
                and seconds
                and monotonic() >= begin + FIRST * seconds
            ):
                proof = Proof(problem, objective, best, begin + seconds - monotonic())
            best = proof.improve(best) if proof else best
            report(best)
            is_over = end is not None and monotonic() >= end
            if number == rounds or is_over or (proof and best.gap <= PROVEN):
                break
    finally:
        if proof:
            proof.stop()
    assert best, "a search yields or raises"
    return proof.improve(best) if proof else best
