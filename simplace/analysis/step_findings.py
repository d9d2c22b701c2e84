"""Findings about a simulated step: GPUs that wait, replicas that run one after another, loops of tiny kernels.

What takes less than a fifth of a millisecond a step is not told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from simplace.analysis.intervals import measure_coverage
from simplace.analysis.schedule import Schedule
from simplace.analysis.utilisation import list_work
from simplace.executor.trace import Span
from simplace.explain.finding import Finding, StepCost
from simplace.explain.gradient_findings import is_update
from simplace.explain.waiting_findings import Bond, GpuWaits, LaunchBoundLoop, SerialReplicas

_LEAST = 200_000  # nanoseconds
_OVERLAP = 0.1  # of the shorter one's work: less is one after another
_ALIKE = 0.8  # of the ops of replicas are of the same types


def find_in_step(schedule: Schedule) -> list[Finding]:
    """Return the findings about a simulated step, the dearest first."""
    found = [*_find_waits(schedule), *_find_serial_replicas(schedule), *_find_loops(schedule)]
    return sorted(found, key=lambda one: -one.cost.seconds)


def _find_waits(schedule: Schedule) -> Iterator[GpuWaits]:
    for one in schedule.device_times:
        device, cause = schedule.placed.devices.by_name[one.device], one.main_cause
        if device.type == "CPU" or cause is None or one.waits[cause].time < _LEAST:
            continue
        span = one.waits[cause].longest
        at, names = _name_span(schedule, schedule.trace.spans[span]) if span >= 0 and cause != "launches" else ("", ())
        cost = StepCost(seconds=one.waits[cause].time / 1e9)
        share = one.waits[cause].time / one.whole
        program = schedule.placement.program.title
        yield GpuWaits(at, program, names, device.short, cause, share, one.kernels, cost=cost)


def _name_span(schedule: Schedule, span: Span) -> tuple[str, tuple[str, ...]]:
    """Return the line and the node of the placement that a span belongs to."""
    graph = schedule.estimated.graph
    part = graph.nodes[span.node]
    origin = graph.copies[part.copy].producer if part.copy >= 0 else part.origin
    node = graph.rewritten.origin[origin] if origin >= 0 else -1
    names = schedule.placement.graph.names
    return graph.source_line(span.node), ((names[node],) if 0 <= node < len(names) else ())


def _find_serial_replicas(schedule: Schedule) -> Iterator[SerialReplicas]:
    """Yield neighbours in time among the GPUs that run ops of the same types, and never at once."""
    trace, nodes, devices = schedule.trace, schedule.estimated.graph.nodes, schedule.placed.devices.by_name
    work = {
        device: [i for i in own if trace.spans[i].step == 0 and not is_update(nodes[trace.spans[i].node].op)]
        for device, own in list_work(trace, schedule.estimated.graph).items()
        if devices[device].type != "CPU"
    }
    busy = {device: measure_coverage(_intervals(schedule, own)) for device, own in work.items()}
    large = [device for device in work if busy[device] >= _LEAST]
    large.sort(key=lambda device: sum(trace.spans[i].end for i in work[device]) / len(work[device]))
    for earlier, later in pairwise(large):
        both = measure_coverage(_intervals(schedule, [*work[earlier], *work[later]]))
        least = min(busy[earlier], busy[later])
        if busy[earlier] + busy[later] - both > _OVERLAP * least or not _are_alike(
            schedule, work[earlier], work[later]
        ):
            continue
        chain = _follow_back(schedule, _find_longest_wait(schedule, work[later]))
        is_bound = not set(work[earlier]).isdisjoint(chain)
        update = next((i for i in chain if is_update(nodes[trace.spans[i].node].op)), -1)
        if is_bound and update < 0:
            continue  # parts of one model, of which one computes what the other is given
        at, names = _name_span(schedule, trace.spans[update]) if is_bound else ("", ())
        bond: Bond = "variable" if is_bound else "thread"
        ends = devices[earlier].short, devices[later].short
        title, cost = schedule.placement.program.title, StepCost(seconds=least / 1e9)
        yield SerialReplicas(at, title, names, *ends, bond, cost=cost)


def _intervals(schedule: Schedule, numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    return ((schedule.trace.spans[i].start, schedule.trace.spans[i].end) for i in numbers)


def _find_longest_wait(schedule: Schedule, work: Sequence[int]) -> int:
    """Return the span of some work before which nothing else of it ran for longest."""
    at, longest, found = 0, -1, work[0]
    for i in sorted(work, key=lambda number: schedule.trace.spans[number].start):
        span = schedule.trace.spans[i]
        if span.start - at > longest:
            longest, found = span.start - at, i
        at = max(at, span.end)
    return found


def _are_alike(schedule: Schedule, first: Sequence[int], second: Sequence[int]) -> bool:
    """Return whether two GPUs run ops of mostly the same types, as often."""
    nodes, spans = schedule.estimated.graph.nodes, schedule.trace.spans
    counts = [Counter(nodes[spans[i].node].op for i in own) for own in (first, second)]
    return (counts[0] & counts[1]).total() >= _ALIKE * (counts[0] | counts[1]).total()


def _follow_back(schedule: Schedule, number: int) -> list[int]:
    """Return the spans that each ended the wait of the one before, from the first work of a GPU on."""
    found: list[int] = []
    while number >= 0 and number not in found:
        found.append(number)
        number = schedule.trace.spans[number].cause
    return found


def _find_loops(schedule: Schedule) -> Iterator[LaunchBoundLoop]:
    """Yield the loops (outermost ones) whose kernels on one GPU take less than half of their time."""
    nodes, devices = schedule.estimated.graph.nodes, schedule.placed.devices.by_name
    loops: dict[str, list[Span]] = {}
    for span in schedule.trace.spans:
        if span.iteration and span.step == 0:
            loops.setdefault(span.iteration.partition(":")[0], []).append(span)
    trips = {loop.name: loop.trips for loop in schedule.flow.loops}
    for name, spans in loops.items():
        whole = max(span.end for span in spans) - min(span.start for span in spans)
        copied = measure_coverage((span.start, span.end) for span in spans if span.kind == "copy")
        for device in dict.fromkeys(nodes[span.node].device for span in spans if span.kind == "kernel"):
            kernels = [span for span in spans if span.kind == "kernel" and nodes[span.node].device == device]
            rest = whole - measure_coverage((span.start, span.end) for span in kernels)
            if rest < _LEAST or 2 * rest < whole or 2 * copied > rest:
                continue
            mean = sum(span.duration for span in kernels) // len(kernels)
            named = [_name_span(schedule, span) for span in kernels]
            at, _ = Counter(line for line, _ in named).most_common(1)[0]
            ops = tuple(dict.fromkeys(op for _, own in named for op in own))
            where = at, schedule.placement.program.title, ops, name, devices[device].short
            cost = StepCost(seconds=rest / 1e9)
            yield LaunchBoundLoop(*where, trips.get(name, 0), len(kernels), mean, cost=cost)
