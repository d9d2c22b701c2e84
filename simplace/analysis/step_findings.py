"""Findings about a simulated step: what GPUs wait for, replicas one after another, tiny kernels, unused results.

What takes less than a fifth of a millisecond a step is not told, nor that a GPU waits for less than one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from simplace.analysis.device_time import Cause, DeviceTime, is_short
from simplace.analysis.intervals import measure_coverage
from simplace.analysis.one_gpu import try_one_gpu
from simplace.analysis.schedule import Schedule
from simplace.analysis.time_sources import measure_error
from simplace.analysis.unused_work import find_unused_work
from simplace.analysis.utilisation import list_work
from simplace.executor.trace import Span, SpanKind
from simplace.explain.finding import Finding, StepCost
from simplace.explain.gradient_findings import is_update
from simplace.explain.waiting_findings import Bond, GpuWaits, LaunchBoundLoop, SerialReplicas
from simplace.graph.algorithm import reverse_reachable
from simplace.graph.op_kinds import DATAFLOW_ONLY, READS
from simplace.program.answered_once import answer_once

_LEAST = 200_000  # nanoseconds
_LEAST_WAIT = 1_000_000
_WORK: frozenset[SpanKind] = frozenset({"launch", "kernel", "copy"})
_OVERLAP = 0.1  # of the shorter one's work: less is one after another
_TOLD_BY_BOND: Mapping[Bond, tuple[Cause, ...]] = {
    "variable": ("devices",), "stream": ("devices", "copies"), "thread": ("launches",)
}  # fmt: skip
_OF_SEVERAL: tuple[Cause, ...] = ("copies", "devices", "launches")  # what more GPUs make more of
_ALIKE = 0.8  # of the ops of replicas are of the same types


@answer_once
def find_in_step(schedule: Schedule) -> tuple[Finding, ...]:
    """Return the findings about a simulated step, the dearest first.

    The dearest about several GPUs tells whether one alone would be quicker, which takes another simulation.
    """
    return _find(schedule, waits=True)


@answer_once
def find_besides_waits(schedule: Schedule) -> tuple[Finding, ...]:
    """Return the findings about a simulated step, the dearest first, but for what GPUs wait for."""
    return _find(schedule, waits=False)


def _find(schedule: Schedule, *, waits: bool) -> tuple[Finding, ...]:
    serial, loops = list(_find_serial_replicas(schedule)), list(_find_loops(schedule))
    found = [*_find_waits(schedule, serial, loops), *serial, *loops, *find_unused_work(schedule)]
    found = _compare_one_gpu(schedule, sorted(found, key=lambda one: -one.cost.seconds), waits)
    return tuple(one for one in found if waits or not isinstance(one, GpuWaits))


def _compare_one_gpu(schedule: Schedule, found: list[Finding], waits: bool) -> list[Finding]:
    """Return findings of which the dearest about several GPUs tells whether one alone would be quicker."""
    for i, one in enumerate(found):
        if isinstance(one, GpuWaits) and one.cause in _OF_SEVERAL and not waits:
            return found
        if isinstance(one, SerialReplicas) or (isinstance(one, GpuWaits) and one.cause in _OF_SEVERAL):
            return [*found[:i], replace(one, alone=try_one_gpu(schedule)), *found[i + 1 :]]
    return found


def _find_waits(
    schedule: Schedule, serial: Sequence[SerialReplicas], loops: Sequence[LaunchBoundLoop]
) -> Iterator[GpuWaits]:
    """Yield what GPUs wait for, those together that wait alike, without what the other findings tell of them."""
    alike: dict[tuple[Cause, str], list[DeviceTime]] = {}
    for one in schedule.device_times:
        device, cause = schedule.placed.devices.by_name[one.device], one.main_cause
        if device.type == "CPU" or cause is None or one.waits[cause].time < _LEAST_WAIT:
            continue
        is_told = any(device.short in each.devices and cause in _TOLD_BY_BOND[each.bond] for each in serial) or any(
            each.device == device.short and cause == "launches" and 2e9 * each.cost.seconds > one.waits[cause].time
            for each in loops
        )
        if not is_told:
            alike.setdefault((cause, schedule.find_awaited_type(one)), []).append(one)
    for (cause, _), group in alike.items():
        yield _describe_waits(schedule, cause, group)


def _describe_waits(schedule: Schedule, cause: Cause, group: Sequence[DeviceTime]) -> GpuWaits:
    """Return the finding about devices that wait alike, at the line of what one of them waits for longest."""
    most = max((one.waits[cause] for one in group), key=lambda waited: waited.time)
    is_named = most.longest >= 0 and cause != "launches"
    at, names = _name_span(schedule, schedule.trace.spans[most.longest]) if is_named else ("", ())
    awaited = {schedule.find_awaited(one) for one in group}
    return GpuWaits(
        at,
        schedule.placement.program.title,
        names,
        tuple(schedule.placed.devices.by_name[one.device].short for one in group),
        cause,
        tuple(one.waits[cause].time / one.whole for one in group),
        tuple(one.kernels for one in group),
        awaited.pop() if len(awaited) == 1 else "",
        cost=_make_cost(schedule, most.time / 1e9),
    )


def _make_cost(schedule: Schedule, seconds: float) -> StepCost:
    """Return time within a step as a cost: it is as far off as the step."""
    shares = sorted(schedule.sources, key=lambda one: -one.share)
    return StepCost(seconds=seconds, error=schedule.uncertainty, sources=tuple(one.source for one in shares))


def _name_span(schedule: Schedule, span: Span) -> tuple[str, tuple[str, ...]]:
    """Return the line and the node of the placement that a span belongs to."""
    graph = schedule.estimated.graph
    part = graph.nodes[span.node]
    origin = graph.copies[part.copy].producer if part.copy >= 0 else part.origin
    node = graph.rewritten.origin[origin] if origin >= 0 else -1
    names = schedule.placement.graph.names
    return graph.source_line(span.node), ((names[node],) if 0 <= node < len(names) else ())


def _find_serial_replicas(schedule: Schedule) -> Iterator[SerialReplicas]:
    """Yield the GPUs that run ops of the same types and never at once, in the order of their work.

    That one thread launches everything is told of all of them, or not at all: of some it is by chance.
    """
    pairs, count = _list_serial_pairs(schedule)
    for chain in _join_pairs(pairs):
        if chain[0].bond != "thread" or len(chain) == count - 1:
            devices = (chain[0].devices[0], *(pair.devices[1] for pair in chain))
            cost = _make_cost(schedule, sum(pair.cost.seconds for pair in chain))
            yield replace(chain[0], devices=devices, cost=cost)


def _join_pairs(pairs: Iterable[SerialReplicas]) -> list[list[SerialReplicas]]:
    """Return pairs in chains: each begins with what the one before ends with, for the same reason."""
    chains: list[list[SerialReplicas]] = []
    for pair in pairs:
        if chains and chains[-1][-1].devices[1] == pair.devices[0] and chains[-1][-1].bond == pair.bond:
            chains[-1].append(pair)
        else:
            chains.append([pair])
    return chains


def _list_serial_pairs(schedule: Schedule) -> tuple[list[SerialReplicas], int]:
    """List the neighbours in time that run ops of the same types and never at once; also count the GPUs that work."""
    trace, nodes, devices = schedule.trace, schedule.estimated.graph.nodes, schedule.placed.devices.by_name
    work = {
        device: [i for i in own if trace.spans[i].step == 0 and _computes(nodes[trace.spans[i].node].op)]
        for device, own in list_work(trace, schedule.estimated.graph).items()
        if devices[device].type != "CPU"
    }
    busy = {device: measure_coverage(_intervals(schedule, own)) for device, own in work.items()}
    large = [device for device in work if busy[device] >= _LEAST]
    large.sort(key=lambda device: sum(trace.spans[i].end for i in work[device]) / len(work[device]))
    pairs = []
    for earlier, later in pairwise(large):
        both = measure_coverage(_intervals(schedule, [*work[earlier], *work[later]]))
        least = min(busy[earlier], busy[later])
        if busy[earlier] + busy[later] - both > _OVERLAP * least or not _are_alike(
            schedule, work[earlier], work[later]
        ):
            continue
        bond, update = _find_bond(schedule, work[earlier], _find_longest_wait(schedule, work[later]))
        if bond is not None:
            at, names = _name_span(schedule, trace.spans[update]) if update >= 0 else ("", ())
            title, cost = schedule.placement.program.title, _make_cost(schedule, least / 1e9)
            both_names = devices[earlier].short, devices[later].short
            pairs.append(SerialReplicas(at, title, names, both_names, bond, cost=cost))
    return pairs, len(large)


def _find_bond(schedule: Schedule, work: Collection[int], number: int) -> tuple[Bond | None, int]:
    """Return why a span comes after the work of another GPU, and the first update of it that the span depends on.

    The update is a span, -1 for none. Parts of one model have no bond: one computes what the other is given.
    """
    spans, nodes = schedule.trace.spans, schedule.estimated.graph.nodes
    if not set(work) & set(_follow_back(schedule, number)):
        return "thread", -1
    before = {nodes[spans[i].node].origin for i in work}
    needed = _find_needed(schedule, number)
    updates = (i for i, span in enumerate(spans) if is_update(nodes[span.node].op) and span.kind in ("op", "kernel"))
    for i in updates:
        if nodes[spans[i].node].origin in needed and before & _find_needed(schedule, i):
            return "variable", i
    return (None, -1) if before & needed else ("stream", -1)


def _find_needed(schedule: Schedule, number: int) -> set[int]:
    """Return the nodes of the placed graph that the node of a span depends on, itself included."""
    graph = schedule.placed.graph
    node = schedule.estimated.graph.nodes[schedule.trace.spans[number].node].origin
    return reverse_reachable([node], lambda at: (graph.edge_src[edge] for edge in graph.in_edges[at]))


def _computes(op: str) -> bool:
    """Return whether an op does a replica's work: not where the replicas' variables are read and updated."""
    return op not in DATAFLOW_ONLY and op not in READS and not is_update(op)


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
    """Yield the outermost loops half of whose time a GPU waits for launches, or runs kernels that are too small."""
    nodes, devices = schedule.estimated.graph.nodes, schedule.placed.devices.by_name
    loops: dict[str, list[Span]] = {}
    for span in schedule.trace.spans:
        if span.iteration and span.step == 0:
            loops.setdefault(span.iteration.partition(":")[0], []).append(span)
    trips = {loop.name: loop.trips for loop in schedule.flow.loops}
    for name, spans in loops.items():
        work = [span for span in spans if span.kind in _WORK]  # what a loop is given may be there long before
        if not work:
            continue
        whole = max(span.end for span in work) - min(span.start for span in work)
        copied = measure_coverage((span.start, span.end) for span in spans if span.kind == "copy")
        for device in dict.fromkeys(nodes[span.node].device for span in spans if span.kind == "kernel"):
            kernels = [span for span in spans if span.kind == "kernel" and nodes[span.node].device == device]
            rest = whole - measure_coverage((span.start, span.end) for span in kernels)
            short = sum(span.duration for span in kernels if is_short(schedule.estimated, span))
            is_busy = 2 * rest < whole
            lost = short if is_busy else rest
            if lost < _LEAST or 2 * lost < whole or 2 * copied > lost:
                continue
            mean = sum(span.duration for span in kernels) // len(kernels)
            off = measure_error(schedule.estimated, kernels)
            named = [_name_span(schedule, span) for span in kernels]
            at, _ = Counter(line for line, _ in named).most_common(1)[0]
            ops = tuple(dict.fromkeys(op for _, own in named for op in own))
            where = at, schedule.placement.program.title, ops, name, devices[device].short
            cost = _make_cost(schedule, lost / 1e9)
            yield LaunchBoundLoop(*where, trips.get(name, 0), len(kernels), mean, off, is_busy, cost=cost)
