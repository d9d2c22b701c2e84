"""Write in one line why the devices of a result's largest program are not busier, and list what a step shows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from simplace.api.simulated_step import is_left_out, simulate_largest
from simplace.errors import NoStepError, SimplaceError
from simplace.result import Result

if TYPE_CHECKING:
    from simplace.analysis.schedule import Schedule
    from simplace.executor.step_options import StepOptions
    from simplace.explain.finding import Finding


def judge_step(result: Result, *, only_cheap: bool = False, lists_findings: bool = False) -> str:
    """Return the verdict on a simulated step, if asked with a line for each finding that it does not tell itself.

    It is "" where there is no step to simulate; `only_cheap` is as for `simulate_largest`, and where it leaves a step
    out the line says who simulates it.
    """
    try:
        schedule = simulate_largest(result, only_cheap=only_cheap)
    except NoStepError as error:
        from viz.names import visible

        return visible(str(error))
    except SimplaceError as error:
        return f"no verdict on a step of {result.largest().name}: {error}"
    if schedule is None:
        return _describe_left_out(result) if only_cheap else ""
    from simplace.analysis.step_findings import find_in_step
    from simplace.explain.waiting_findings import GpuWaits
    from simplace.views.text.finding_list import describe_finding
    from simplace.views.text.verdict import write_step_verdict
    from viz.names import visible

    found = find_in_step(schedule) if lists_findings else ()
    told = [one for one in found if not isinstance(one, GpuWaits)]
    inputs = visible(describe_slow_input(result, schedule)), visible(_describe_untimed_input(result, schedule))
    verdict = "; ".join(filter(None, [write_step_verdict(schedule), *inputs]))
    return "\n".join([verdict, *(visible(f"  ! {describe_finding(one)}") for one in told)])


def _describe_left_out(result: Result) -> str:
    if not is_left_out(result):
        return ""
    from viz.names import visible

    name = result.largest().placement.program.title
    return visible(
        f"no step of {name} is simulated here, since it is large or has long loops: simplace schedule does, and says "
        "what its devices wait for"
    )


def may_gain(result: Result, findings: Iterable[Finding]) -> bool:
    """Return whether a step can be timed, and costs what a finding tells, leaves a GPU idle, or waits for its input."""
    from simplace.explain.finding import NO_COST
    from simplace.explain.findings import IdleGpu

    try:
        if simulate_largest(result) is None:
            return False
    except SimplaceError:  # `judge_step` says why
        return False
    return any(one.cost != NO_COST or isinstance(one, IdleGpu) for one in findings) or is_input_slow(result)


def is_input_slow(result: Result) -> bool:
    """Return whether the dataset takes longer than a step of the largest program."""
    if not _has_dataset(result):
        return False  # without simulating a step
    try:
        schedule = simulate_largest(result)
    except SimplaceError:  # `judge_step` says why
        return False
    return schedule is not None and bool(describe_slow_input(result, schedule))


def describe_slow_input(result: Result, schedule: Schedule, options: StepOptions | None = None) -> str:
    """Return what of the dataset takes longer than a step, in a clause; "" where nothing does, or none is there."""
    if not _has_dataset(result):
        return ""
    from simplace.executor.step_options import StepOptions
    from simplace.suggestions.estimated_step import count_step_examples
    from simplace.suggestions.input_pipeline import find_slowest_map
    from simplace.suggestions.suggestion_sentences import describe_input

    slowest = find_slowest_map(result, schedule, count_step_examples(schedule), options or StepOptions())
    return describe_input(slowest, schedule)


def _describe_untimed_input(result: Result, schedule: Schedule) -> str:
    if not _has_dataset(result):
        return ""
    from simplace.suggestions.estimated_step import count_step_examples
    from simplace.suggestions.input_pipeline import find_untimed_input
    from simplace.suggestions.suggestion_sentences import describe_untimed

    return describe_untimed(find_untimed_input(result, schedule, count_step_examples(schedule)))


def _has_dataset(result: Result) -> bool:
    return any(one.placement.program.kind == "dataset" for one in result.programs)
