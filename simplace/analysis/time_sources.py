"""Where the times of a simulated step come from, and how far they may be off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from simplace.costs.cost_model import KernelCost, Source
from simplace.costs.estimate import EstimatedGraph
from simplace.executor.trace import Span


@dataclass(frozen=True, slots=True)
class SourceShare:
    """Record of the share of a path's time that comes from one source, and its mean error (None: nobody knows)."""

    source: Source
    share: float
    error: float | None


def find_cost(estimated: EstimatedGraph, span: Span) -> KernelCost | None:
    """Return what a span's length was taken from; None for copies, launches and nodes that do not run."""
    return estimated.kernels[span.node] if span.kind in ("op", "kernel", "shard", "collective") else None


def share_sources(estimated: EstimatedGraph, path: Sequence[Span]) -> tuple[SourceShare, ...]:
    """Return the shares of a path's time by source, measured first; copies and launches are guessed.

    Errors of a source are averaged by time: those of one model are all too high or all too low as likely as not.
    """
    times: dict[Source, float] = {"measured": 0.0, "modelled": 0.0, "guessed": 0.0}
    off: dict[Source, float] = dict.fromkeys(times, 0.0)
    unknown: set[Source] = set()
    for span in path:
        cost = find_cost(estimated, span)
        source: Source = cost.source if cost is not None else "guessed"
        times[source] += span.duration
        if cost is None or cost.error is None:
            unknown.add(source)
        else:
            off[source] += cost.error * span.duration
    total = sum(times.values())
    return tuple(
        SourceShare(source, time / total, None if source in unknown else off[source] / time)
        for source, time in times.items()
        if time
    )
