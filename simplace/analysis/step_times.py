"""Simulate a step of two placements, such as those before and after a change."""

from __future__ import annotations

from dataclasses import dataclass

from simplace.analysis.schedule import Schedule
from simplace.errors import SimplaceError
from simplace.executor.step_options import StepOptions
from simplace.placement.placement import Placement


@dataclass(frozen=True, slots=True)
class StepTimes:
    """Record of the simulated step times before and after, in nanoseconds, and the name of the cost model.

    `without` is the reason why there are no times, "" where there are. `errors` are how far off each time is in the
    mean, as a share; what both have in common is off in both alike.
    """

    before: int = 0
    after: int = 0
    costs: str = ""
    without: str = ""
    errors: tuple[float, float] = (0.0, 0.0)


UNCHANGED = StepTimes(without="both placements are the same")


def step_times(before: Placement, after: Placement, options: StepOptions) -> StepTimes:
    """Simulate both placements with the same executor and costs.

    A placement that cannot run, such as a refused one, leaves both without times.
    """
    try:
        first, second = (Schedule.of(one, options) for one in (before, after))
    except SimplaceError as error:
        return StepTimes(without=str(error))
    return StepTimes(
        first.trace.makespan, second.trace.makespan, second.estimated.costs,
        errors=(first.uncertainty, second.uncertainty),
    )  # fmt: skip
