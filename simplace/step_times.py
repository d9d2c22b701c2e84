"""Simulate a step of both placements of a comparison."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from simplace.changes import ProgramChanges
from simplace.errors import SimplaceError
from simplace.scheduling import schedule


@dataclass(frozen=True, slots=True)
class StepTimes:
    """Hold the simulated step before and after, in nanoseconds, and the name of the cost model.

    `without` says why there are no times, "" where there are.
    """

    before: int = 0
    after: int = 0
    costs: str = ""
    without: str = ""


def step_times(change: ProgramChanges, **options: Any) -> StepTimes:
    """Run both placements on the same executor at the same costs; the options are those of `scheduling.schedule`.

    A placement that cannot run, such as a refused one, leaves both without times, and so does a program that the
    change leaves as it is.
    """
    if not change.differs:
        return StepTimes(without="both placements are the same")
    try:
        before, after = (schedule(one.placement, **options) for one in (change.before, change.after))
    except SimplaceError as error:
        return StepTimes(without=str(error))
    return StepTimes(before.trace.makespan, after.trace.makespan, after.priced.model.name)
