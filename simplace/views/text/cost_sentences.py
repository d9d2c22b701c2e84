"""What the cost model says of one op, in words."""

from __future__ import annotations

from collections.abc import Iterable

from simplace.analysis.schedule import Schedule
from simplace.analysis.time_sources import SourceShare
from simplace.costs.cost_model import KernelCost
from simplace.explain.finding_lines import format_error
from simplace.views.text.quantities import format_duration

_OF_PEAK = {"memory": "of peak bandwidth", "arithmetic": "of peak FLOP/s"}


def describe_bound(cost: KernelCost | None) -> str:
    """Return what bounds a kernel, and how near it comes to the peak of that.

    >>> describe_bound(KernelCost(0.0, 1e-3, bound="memory", share=0.714))
    'memory-bound, 71% of peak bandwidth'
    >>> describe_bound(KernelCost(0.0, 1e-6, bound="latency", share=0.2)), describe_bound(KernelCost(1e-3))
    ('latency-bound', '')
    """
    if cost is None or cost.bound is None:
        return ""
    if cost.bound == "latency":
        return "latency-bound"
    return f"{cost.bound}-bound, {cost.share:.0%} {_OF_PEAK[cost.bound]}"


def format_uncertain(nanoseconds: float, error: float) -> str:
    """Return a time with its uncertainty; no time at all is certain.

    >>> format_uncertain(4_100_000, 0.12), format_uncertain(0, 0.12)
    ('4.1 ms ± 12%', '0')
    """
    return format_duration(nanoseconds) + (format_error(error) if nanoseconds else "")


def head_with_error(head: str, schedule: Schedule) -> str:
    """Return the heading of a column of times that lie within a step, which are as far off as the step is."""
    return head + format_error(schedule.uncertainty)


def format_makespan(schedule: Schedule) -> str:
    """Return the time of a simulated step with its uncertainty."""
    return format_uncertain(schedule.trace.makespan, schedule.uncertainty)


def describe_sources(shares: Iterable[SourceShare]) -> str:
    """Return where a path's time comes from.

    >>> describe_sources([SourceShare("modelled", 0.8, 0.1), SourceShare("guessed", 0.2, 0.5)])
    '80% modelled (± 10%), 20% guessed (± 50%)'
    """
    return ", ".join(
        f"{one.share:.0%} {one.source}" + (f" ({format_error(one.error).strip()})" if one.error else "")
        for one in shares
    )
