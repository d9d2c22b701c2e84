"""Say in one line why the devices of a result's largest program are not busier, and list what a step shows."""

from __future__ import annotations

from simplace.api.simulated_step import simulate_largest
from simplace.errors import SimplaceError
from simplace.result import Result


def judge_step(result: Result, *, only_cheap: bool = False, lists_findings: bool = False) -> str:
    """Return the verdict on a simulated step, if asked with a line for each finding that it does not tell itself.

    It is "" where there is no step to simulate; `only_cheap` is as for `simulate_largest`.
    """
    try:
        schedule = simulate_largest(result, only_cheap=only_cheap)
    except SimplaceError as error:
        return f"no verdict on a step of {result.largest().name}: {error}"
    if schedule is None:
        return ""
    from simplace.analysis.step_findings import find_in_step
    from simplace.explain.waiting_findings import GpuWaits
    from simplace.views.text.finding_list import describe_finding
    from simplace.views.text.verdict import write_step_verdict
    from viz.names import visible

    found = find_in_step(schedule) if lists_findings else []
    told = [one for one in found if not isinstance(one, GpuWaits)]
    return "\n".join([write_step_verdict(schedule), *(visible(f"  ! {describe_finding(one)}") for one in told)])
