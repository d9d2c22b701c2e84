"""Where the times of a simulated step come from, and how far they may be off.

Errors of one kind go together: the model of kernels is too fast or too slow on a whole GPU, whatever the class of
operators, so within a kind they add up as they are. Kinds know nothing of each other, so theirs add up as squares.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import hypot
from typing import Literal, NamedTuple

from simplace.costs.cost_model import Fixed, KernelCost, Source
from simplace.costs.estimate import EstimatedGraph
from simplace.executor.trace import Span

Kind = Literal["modelled", "measured", "calibrated", "guessed kernel", "guessed cluster", "copy", "executor"]


class TimeSource(NamedTuple):
    """Record of what a time was taken from: `error` is how far off it is in the mean, as a share of it."""

    source: Source
    error: float
    kind: Kind


@dataclass(frozen=True, slots=True)
class SourceShare:
    """Record of the share of a path's time that comes from one source, and its mean error."""

    source: Source
    share: float
    error: float


def find_cost(estimated: EstimatedGraph, span: Span) -> KernelCost | None:
    """Return what a span's length was taken from; None for copies, launches and nodes that do not run."""
    return estimated.kernels[span.node] if span.kind in ("op", "kernel", "shard", "collective") else None


def find_source(estimated: EstimatedGraph, span: Span) -> TimeSource:
    """Return where a span's length comes from."""
    cost = find_cost(estimated, span)
    if cost is not None and cost.host_s + cost.device_s > 0:
        return TimeSource(cost.source, cost.off, _find_kind(estimated, span, cost))
    what: Fixed = span.kind if span.kind in ("copy", "launch") else "executor"
    source, error = estimated.model.assume_reliability(what)
    return TimeSource(source, error, "copy" if what == "copy" else "executor")


def _find_kind(estimated: EstimatedGraph, span: Span, cost: KernelCost) -> Kind:
    """Return what a kernel's error goes together with: XLA's kernels on a CPU are others than TensorFlow's."""
    if cost.source != "guessed":
        return cost.source
    return "guessed cluster" if span.node in estimated.held else "guessed kernel"


def share_sources(estimated: EstimatedGraph, path: Sequence[Span]) -> tuple[SourceShare, ...]:
    """Return the shares of a path's time by source, measured first; errors of a source are averaged by time."""
    times: dict[Source, float] = {"measured": 0.0, "calibrated": 0.0, "modelled": 0.0, "guessed": 0.0}
    off: dict[Source, float] = dict.fromkeys(times, 0.0)
    for span in path:
        found = find_source(estimated, span)
        times[found.source] += span.duration
        off[found.source] += found.error * span.duration
    total = sum(times.values())
    return tuple(SourceShare(source, time / total, off[source] / time) for source, time in times.items() if time)


def list_errors(estimated: EstimatedGraph, path: Sequence[Span]) -> dict[Kind, float]:
    """Return how far off the length of a critical path is for each kind of error, as shares of the length."""
    whole = max((span.end for span in path), default=0) - min((span.start for span in path), default=0)
    if not whole:
        return {}
    off: defaultdict[Kind, float] = defaultdict(float)
    for span in path:
        found = find_source(estimated, span)
        off[found.kind] += found.error * span.duration / whole
    between = max(0, whole - sum(span.duration for span in path))
    off["executor"] += estimated.model.assume_reliability("executor").error * between / whole
    return off


def measure_error(estimated: EstimatedGraph, spans: Iterable[Span]) -> float:
    """Return how far off the sum of the lengths of spans is in the mean, as a share of it."""
    return add_errors(estimated, ((span, span.duration) for span in spans))


def add_errors(estimated: EstimatedGraph, times: Iterable[tuple[Span | None, int]]) -> float:
    """Return how far off a sum of times is, each of them taken from a span, or from between two of a path (None)."""
    off: defaultdict[Kind, float] = defaultdict(float)
    whole = 0
    between = TimeSource(*estimated.model.assume_reliability("executor"), "executor")
    for span, time in times:
        found = between if span is None else find_source(estimated, span)
        off[found.kind] += found.error * time
        whole += time
    return hypot(*off.values()) / whole if whole else 0.0


def compare_errors(before: Mapping[Kind, float], after: Mapping[Kind, float]) -> float:
    """Return how far off the quotient of two steps' times is, as a share of it; errors of a kind are off in both alike.

    >>> compare_errors({"modelled": 0.1}, {"modelled": 0.1}), compare_errors({"copy": 0.2}, {"modelled": 0.15})
    (0.0, 0.25)
    """
    return hypot(*(before.get(kind, 0.0) - after.get(kind, 0.0) for kind in {*before, *after}))
