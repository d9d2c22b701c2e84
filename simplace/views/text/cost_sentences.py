"""What the cost model says of one op, in words."""

from __future__ import annotations

from collections.abc import Iterable

from simplace.analysis.time_sources import SourceShare
from simplace.costs.cost_model import KernelCost

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


def format_error(error: float | None) -> str:
    """Return an uncertainty to put after a time.

    >>> format_error(0.123), format_error(None)
    (' ± 12%', '')
    """
    return "" if error is None else f" ± {error:.0%}"


def describe_sources(shares: Iterable[SourceShare]) -> str:
    """Return where a path's time comes from.

    >>> describe_sources([SourceShare("modelled", 0.8, 0.1), SourceShare("guessed", 0.2, None)])
    '80% modelled (± 10%), 20% guessed'
    """
    return ", ".join(
        f"{one.share:.0%} {one.source}" + (f" ({format_error(one.error).strip()})" if one.error is not None else "")
        for one in shares
    )
