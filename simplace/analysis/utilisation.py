"""How busy threads, streams, links and devices were, and how much ran at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from simplace.analysis.intervals import Steps, count_open, measure_coverage
from simplace.costs.estimate import EstimatedGraph
from simplace.executor.trace import Span, Trace
from simplace.partition.graph_partition import PartitionedGraph


@dataclass(frozen=True, slots=True)
class Busy:
    """Record of the busy time of a track or device in nanoseconds, and its share of the whole run."""

    name: str
    busy: int
    share: float
    spans: int


@dataclass(frozen=True, slots=True)
class CardUse:
    """Record of a physical GPU that is split into logical `gpus` (short names): how long kernels of any of them ran.

    `busy` is in nanoseconds, `share` that of the whole run.
    """

    number: int
    gpus: tuple[str, ...]
    busy: int
    share: float


def measure_tracks(trace: Trace, estimated: EstimatedGraph) -> tuple[Busy, ...]:
    """Return each track's busy time, in the order of the tracks."""
    return tuple(
        _measure_busy(track.name, [trace.spans[i] for i in own], trace.makespan, estimated)
        for track, own in zip(trace.tracks, trace.by_track, strict=True)
    )


def measure_devices(trace: Trace, estimated: EstimatedGraph) -> tuple[Busy, ...]:
    """Return for each device how long at least one of its kernels ran; for a GPU, launches do not count."""
    devices, work = estimated.graph.placed.devices.by_name, list_work(trace, estimated.graph)
    return tuple(
        _measure_busy(devices[device].short, [trace.spans[i] for i in numbers], trace.makespan, estimated)
        for device, numbers in work.items()
    )


def measure_split_cards(trace: Trace, estimated: EstimatedGraph) -> tuple[CardUse, ...]:
    """Return the physical GPUs of which several logical ones take part, in the order of these."""
    devices, work, found = estimated.graph.placed.devices, list_work(trace, estimated.graph), []
    for names in dict.fromkeys(devices.cards.values()):
        running = [name for name in names if work.get(name)]
        if len(running) > 1:
            spans = [trace.spans[i] for name in running for i in work[name]]
            all_of_them = _measure_busy("", spans, trace.makespan, estimated)
            shorts = tuple(devices.by_name[name].short for name in running)
            found.append(CardUse(devices.by_name[names[0]].card, shorts, all_of_them.busy, all_of_them.share))
    return tuple(found)


def list_work(trace: Trace, graph: PartitionedGraph) -> dict[str, list[int]]:
    """Map each device (its full name) to the numbers of the spans in which its kernels run, without launches."""
    found: dict[str, list[int]] = {device: [] for device in graph.devices}
    launched = {span.node for span in trace.spans if span.kind == "launch"}
    for i, span in enumerate(trace.spans):
        if span.kind in ("kernel", "op", "shard") and graph.nodes[span.node].role == "op":
            is_host_part = span.kind == "op" and (span.node in launched or _is_launcher(trace, graph, span))
            if not is_host_part:
                found[graph.nodes[span.node].device].append(i)
    return found


def sum_waits(estimated: EstimatedGraph, spans: Iterable[Span]) -> int:
    """Sum the nanoseconds within spans during which a stream waits for the host to launch the next kernel."""
    return round(sum(1e9 * estimated.kernels[span.node].waits_s for span in spans if span.kind == "kernel"))


def count_busy_tracks(trace: Trace) -> Steps:
    """Return rows of (time in nanoseconds, how many tracks are busy from then on), without repeats."""
    return count_open(_list_intervals(trace.spans))


def _is_launcher(trace: Trace, graph: PartitionedGraph, span: Span) -> bool:
    """Return whether a span is a launch by a CPU thread for a GPU; such threads belong to a process."""
    device = graph.placed.devices.by_name[graph.nodes[span.node].device]
    return device.type != "CPU" and trace.tracks[span.track].owner != device.name


def _measure_busy(name: str, spans: list[Span], whole: int, estimated: EstimatedGraph) -> Busy:
    waits = sum_waits(estimated, spans)  # of kernels that are one span
    time = measure_coverage(_list_intervals(spans)) - waits
    return Busy(name, time, time / whole if whole else 0.0, sum(span.duration > 0 for span in spans))


def _list_intervals(spans: Iterable[Span]) -> Iterator[tuple[int, int]]:
    return ((span.start, span.end) for span in spans)
