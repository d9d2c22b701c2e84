"""Describe a schedule as a Gantt chart: one track per thread, stream and link."""

from __future__ import annotations

from collections import Counter

from simplace.analysis.schedule import Schedule
from simplace.devices.device_name import LOCAL_TASK
from simplace.executor.trace import Span, Track
from simplace.result import Placed
from simplace.views.figures.captions import describe_placement
from simplace.views.text.schedule_tables import format_duration
from viz import Group
from viz.gantt import Bar, BarKind, Gantt
from viz.gantt import Track as Row

_KINDS: dict[str, BarKind] = {
    "op": "op", "kernel": "op", "launch": "launch", "shard": "part", "copy": "copy", "dead": "op",
}  # fmt: skip


def draw_timeline(schedule: Schedule) -> Gantt:
    """Return the chart of a schedule; tracks without events are left out."""
    trace = schedule.trace
    used = [i for i in trace.lane_order if any(trace.spans[s].duration for s in trace.by_track[i])]
    rows = {track: row for row, track in enumerate(used)}
    critical = set(schedule.critical_path)
    bars = tuple(
        _draw_bar(schedule, span, rows[span.track], i in critical)
        for i, span in enumerate(trace.spans)
        if span.duration
    )
    tracks = tuple(
        Row(_shorten_track_name(schedule, trace.tracks[i]), get_track_heading(schedule, trace.tracks[i])) for i in used
    )
    title = f"{schedule.placement.program.title}: {format_duration(trace.makespan)}"
    if len(trace.steps) > 1:
        title += f" for {len(trace.steps)} steps"
    caption = describe_settings(schedule)
    said = f"{describe_placement(Placed(schedule.placement), 'Simulated schedule')} {title}; {caption}."
    return Gantt(title, caption, tracks, bars, _list_groups(schedule), trace.makespan / 1e9, said)


def describe_settings(schedule: Schedule) -> str:
    """Return on what a schedule was simulated: executor, threads, cores, costs."""
    threads = schedule.threads
    inter = "the caller's thread" if threads.inter_op == -1 else f"inter-op {threads.inter_op_size}"
    each = " a device" if schedule.executor == "textbook" else ""
    cores = "" if schedule.executor == "textbook" else f", {threads.cores} cores"
    return (
        f"{schedule.executor} executor, {inter}{each}, intra-op {threads.intra_op_size}{each}{cores}; "
        f"costs {schedule.estimated.model.name}"
    )


def get_track_heading(schedule: Schedule, track: Track) -> str:
    """Return the heading of a track: the device of a stream, the process of a thread, or "links"."""
    if track.kind == "link":
        return "links"
    device = schedule.placement.devices.by_name.get(track.owner)
    if device is not None:
        return device.short
    return "threads of the process" if track.owner == LOCAL_TASK else f"threads of {track.owner}"


def _list_groups(schedule: Schedule) -> tuple[Group, ...]:
    counts: Counter[str] = Counter()
    groups = []
    for device in schedule.placement.devices:
        groups.append(Group(device.name, device.short, kind=device.type, index=counts[device.type]))
        counts[device.type] += 1
    return tuple(groups)


def _shorten_track_name(schedule: Schedule, track: Track) -> str:
    """Return a track's name without what its owner's heading repeats."""
    owner = get_track_heading(schedule, track)
    return track.name.removeprefix(owner).strip() if owner and track.name != owner else track.name


def _draw_bar(schedule: Schedule, span: Span, row: int, is_critical: bool) -> Bar:
    graph = schedule.estimated.graph
    node = graph.nodes[span.node]
    device = graph.copies[node.copy].target if span.kind == "copy" else node.device
    name = graph.copies[node.copy].tensor if span.kind == "copy" else node.name
    label = name.rpartition("/")[2] or name
    if span.kind == "copy" and graph.copies[node.copy].is_control:
        label = f"control signal of {label.removeprefix('^')}"
    if span.kind == "shard":
        label += " (part)"
    return Bar(
        row, span.start / 1e9, span.end / 1e9, label, device, _KINDS[span.kind],
        is_critical, _write_tooltip(schedule, span, name),
    )  # fmt: skip


def _write_tooltip(schedule: Schedule, span: Span, name: str) -> str:
    graph = schedule.estimated.graph
    parts = [
        f"{name} ({graph.nodes[span.node].op}), {format_duration(span.duration)} from {format_duration(span.start)}"
    ]
    if span.start > span.ready:
        parts.append(f"waited {format_duration(span.start - span.ready)} for a {span.why}")
    if span.iteration:
        parts.append(f"iteration {span.iteration}")
    line = graph.source_line(span.node)
    return "; ".join(parts) + (f"; {line}" if line else "")
