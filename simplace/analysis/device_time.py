"""Where the time of each device goes in a simulated step: busy, or waiting, and for what; it adds up to the step.

A wait is followed back from the work that ended it along the spans that each ended the wait of the next, as on the
critical path; each of them accounts for its own length, and hand-offs and polling between them count as the host's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import get_args

from simplace.analysis.intervals import merge_intervals
from simplace.analysis.utilisation import list_work, sum_waits
from simplace.costs.estimate import EstimatedGraph
from simplace.executor.trace import Span, Trace
from simplace.explain.waiting_findings import Awaited

Cause = Awaited
CAUSES: tuple[Cause, ...] = get_args(Cause)

_SHORT = 20_000  # nanoseconds: what takes longer is many kernels, of a cluster that XLA compiles

# Ops that hand over what an input pipeline, or a queue, has ready.
_INPUT = frozenset(
    "IteratorGetNext IteratorGetNextSync IteratorGetNextAsOptional MultiDeviceIteratorGetNextFromShard QueueDequeue "
    "QueueDequeueV2 QueueDequeueMany QueueDequeueManyV2 QueueDequeueUpToV2 ReaderReadV2".split()
)


@dataclass(frozen=True, slots=True)
class Waited:
    """Record of what a device waited for one cause, in nanoseconds; `longest` is the span that it waited for most.

    `longest` is -1 where the wait was for the host's hand-offs and polling alone.
    """

    time: int
    longest: int


@dataclass(frozen=True, slots=True)
class DeviceTime:
    """Record of where the time of one device goes, in nanoseconds; `busy`, `idle` and all waits add up to `whole`.

    `waits` are by cause: launches by the host (with its bookkeeping), copies, collectives, the input pipeline, other
    `devices`. `kernels` counts what ran. A device on which nothing runs is `idle` all the time. `latency` is how much
    of the kernels' time goes to short ones that are bound by latency: less work would not make them shorter.
    """

    device: str
    whole: int
    busy: int
    idle: int
    waits: Mapping[Cause, Waited]
    kernels: int
    latency: int = 0

    @property
    def is_latency_bound(self) -> bool:
        """Return whether the device is busy most of the time, mostly with kernels that are too small for it."""
        return 3 * self.busy > 2 * self.whole and 2 * self.latency > self.busy

    @property
    def is_idle(self) -> bool:
        """Return whether nothing that takes time runs on the device."""
        return not self.busy

    @property
    def main_cause(self) -> Cause | None:
        """Return the cause of most of the waiting, None where the device waits less than it is busy."""
        if not self.waits:
            return None
        most = max(self.waits, key=lambda cause: (self.waits[cause].time, -CAUSES.index(cause)))
        return most if self.waits[most].time > self.busy else None


def account_for_time(trace: Trace, estimated: EstimatedGraph, devices: Sequence[str]) -> tuple[DeviceTime, ...]:
    """Return where the time of each device (a full name) goes."""
    work = list_work(trace, estimated.graph)
    last = _find_last_spans(trace)
    return tuple(_Account(trace, estimated, name, work.get(name, []), last).closed() for name in devices)


def is_short(estimated: EstimatedGraph, span: Span) -> bool:
    """Return whether a span is a kernel of a GPU that takes little more than any kernel takes at least."""
    return span.kind == "kernel" and span.duration <= _SHORT and estimated.kernels[span.node].bound == "latency"


def _find_last_spans(trace: Trace) -> dict[int, int]:
    """Map each step to the span that ends last in it, the first recorded of several."""
    last: dict[int, int] = {}
    for i, span in enumerate(trace.spans):
        if span.step not in last or span.end > trace.spans[last[span.step]].end:
            last[span.step] = i
    return last


@dataclass(slots=True)
class _Account:
    """Collect the waits of one device; `work` are the numbers of its spans that count as busy."""

    trace: Trace
    estimated: EstimatedGraph
    device: str
    work: list[int]
    last: Mapping[int, int]
    waits: dict[Cause, int] = field(default_factory=dict)
    longest: dict[Cause, tuple[int, int]] = field(default_factory=dict)  # (time, span)

    def closed(self) -> DeviceTime:
        """Return the account of all steps."""
        whole, spans = self.trace.makespan, [self.trace.spans[i] for i in self.work]
        costs = [self.estimated.kernels[span.node] for span in spans if span.kind in ("kernel", "op")]
        if not any(span.duration for span in spans):
            return DeviceTime(self.device, whole, 0, whole, {}, 0)
        busy = merge_intervals((span.start, span.end) for span in spans)
        first_at = {self.trace.spans[i].start: i for i in reversed(self.work)}
        start = 0
        for step, end in enumerate(self.trace.steps):
            at = start
            for begins, ends in busy:
                if start < ends and begins < end:  # work of two steps can touch
                    self._explain(at, begins, first_at[begins], step)
                    at = min(ends, end)
            self._explain(at, end, -1, step)
            start = end
        inside = sum_waits(self.estimated, spans)
        self.waits["launches"] = self.waits.get("launches", 0) + inside
        waits = {cause: Waited(time, self.longest.get(cause, (0, -1))[1]) for cause, time in self.waits.items() if time}
        latency = sum(span.duration for span in spans if is_short(self.estimated, span))
        works = sum(end - start for start, end in busy) - inside
        return DeviceTime(self.device, whole, works, 0, waits, sum(cost.launches for cost in costs), latency)

    def _explain(self, start: int, end: int, work: int, step: int) -> None:
        """Account for a wait that the start of a span of work ended, or (-1) the end of the step."""
        spans, at, seen = self.trace.spans, end, set[int]()
        cause = spans[work].cause if work >= 0 else self.last[step]
        while at > start and cause >= 0 and cause not in seen and spans[cause].step == step:
            seen.add(cause)
            span = spans[cause]
            if span.end < at:
                self._add("launches", max(span.end, start), at, -1)
                at = max(span.end, start)
            if span.start < at:
                self._add(self._judge(span), max(span.start, start), at, cause)
                at = max(span.start, start)
            cause = span.cause
        self._add("launches", start, at, -1)

    def _add(self, cause: Cause, start: int, end: int, span: int) -> None:
        if end <= start:
            return
        self.waits[cause] = self.waits.get(cause, 0) + end - start
        if span >= 0 and end - start > self.longest.get(cause, (0, -1))[0]:
            self.longest[cause] = (end - start, span)

    def _judge(self, span: Span) -> Cause:
        """Return what a span is to a device that waits for it."""
        node = self.estimated.graph.nodes[span.node]
        if span.kind in ("copy", "collective"):
            return "copies" if span.kind == "copy" else "collectives"
        if span.kind in ("launch", "dead") or node.role != "op":
            return "launches"
        if node.op in _INPUT:
            return "input"
        computes = span.kind == "kernel" or self.estimated.kernels[span.node].host_s > 0
        return "devices" if computes and node.device != self.device else "launches"
