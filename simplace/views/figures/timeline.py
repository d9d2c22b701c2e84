"""Describe a schedule as a Gantt chart: one track per thread, stream and link."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from simplace.analysis.part_names import name_part
from simplace.analysis.schedule import Schedule
from simplace.analysis.time_sources import find_cost, find_source
from simplace.devices.device_name import LOCAL_TASK
from simplace.devices.device_set import shorten_task
from simplace.executor.trace import Track
from simplace.partition.transfers import Copy
from simplace.program.known_names import strip_number
from simplace.result import Placed
from simplace.views.figures.captions import describe_placement, shorten_title
from simplace.views.text.cost_sentences import describe_bound, format_makespan, format_uncertain
from simplace.views.text.quantities import format_bytes
from simplace.views.text.sharing_phrases import describe_sharing
from simplace.views.text.traffic_phrases import describe_traffic, join_devices
from simplace.views.text.verdict import write_brief_verdict
from simplace.views.text.wait_phrases import WAITED_FOR
from viz import Group
from viz.gantt import Bar, BarKind, Gantt
from viz.gantt import Track as Row

_KINDS: dict[str, BarKind] = {
    "op": "op", "kernel": "op", "launch": "launch", "shard": "part", "copy": "copy", "dead": "op",
    "collective": "collective",
}  # fmt: skip


_BADGES = 2  # devices of a type from which on what threads and links do for them has their number


def draw_timeline(schedule: Schedule) -> Gantt:
    """Return the chart of a schedule, bars labelled by op type or size; tracks without events are left out."""
    trace = schedule.trace
    used = [i for i in trace.track_order if any(trace.spans[s].duration for s in trace.by_track[i])]
    rows = {track: row for row, track in enumerate(used)}
    critical = set(schedule.critical_path)
    bars = (
        *(
            _draw_bar(schedule, i, rows[span.track], i in critical)
            for i, span in enumerate(trace.spans)
            if span.duration and span.kind != "collective"
        ),
        *_draw_collectives(schedule, rows, critical),
    )
    tracks = tuple(
        Row(_shorten_track_name(schedule, trace.tracks[i]), get_track_heading(schedule, trace.tracks[i])) for i in used
    )
    steps = f" for {len(trace.steps)} steps" if len(trace.steps) > 1 else ""
    name = shorten_title(schedule.placement.program.title)
    title = f"{name}: {format_makespan(schedule)}{steps}; {write_brief_verdict(schedule)}"
    sent = describe_traffic(schedule.estimated.graph.traffic)
    caption = "\n".join([describe_settings(schedule), *([sent] if sent else [])])
    what = describe_placement(Placed(schedule.placement), "Simulated schedule")
    said = f"{what} {title}; {caption.replace(chr(10), '; ')}."
    return Gantt(title, caption, tracks, bars, _list_groups(schedule), trace.makespan / 1e9, said)


def describe_settings(schedule: Schedule) -> str:
    """Return on what a schedule was simulated: executor, threads, cores, costs."""
    threads = schedule.threads
    inter = "the caller's thread" if threads.inter_op == -1 else f"inter-op {threads.inter_op_size}"
    each = " a device" if schedule.executor == "textbook" else ""
    cores = "" if schedule.executor == "textbook" else f", {threads.cores} cores"
    return (
        f"{schedule.executor} executor, {inter}{each}, intra-op {threads.intra_op_size}{each}{cores}; "
        f"costs {schedule.estimated.costs}"
    )


def get_track_heading(schedule: Schedule, track: Track) -> str:
    """Return the heading of a track: the device of a stream, the process of a thread, "collectives" or "links"."""
    if track.kind in ("link", "collective"):
        return f"{track.kind}s"
    device = schedule.placement.devices.by_name.get(track.owner)
    if device is not None:
        return device.short
    return "threads of the process" if track.owner == LOCAL_TASK else f"threads of {shorten_task(track.owner)}"


def _list_groups(schedule: Schedule) -> tuple[Group, ...]:
    counts: Counter[str] = Counter()
    groups = []
    for device in schedule.placement.devices:
        groups.append(Group(device.name, device.short, kind=device.type, index=counts[device.type]))
        counts[device.type] += 1
    return tuple(
        replace(group, badge=f"{group.index}") if group.kind != "CPU" and counts[group.kind] >= _BADGES else group
        for group in groups
    )


def _shorten_track_name(schedule: Schedule, track: Track) -> str:
    """Return a track's name without what its owner's heading repeats."""
    owner = get_track_heading(schedule, track)
    if track.kind == "collective":
        return track.name.removesuffix(f" {owner}")
    owner = owner.removeprefix("threads of ")
    return track.name.removeprefix(owner).strip() if owner and track.name != owner else track.name


def _draw_bar(schedule: Schedule, number: int, row: int, is_critical: bool) -> Bar:
    graph, span = schedule.estimated.graph, schedule.trace.spans[number]
    node = graph.nodes[span.node]
    device = graph.copies[node.copy].target if span.kind == "copy" else node.device
    label, more = (
        _label_copy(graph.copies[node.copy]) if span.kind == "copy" else (node.op, _name_op(node.name, node.op))
    )
    return Bar(
        row, span.start / 1e9, span.end / 1e9, label, device, _KINDS[span.kind],
        is_critical, _write_tooltip(schedule, number), more=more, error=find_source(schedule.estimated, span).error,
    )  # fmt: skip


def _name_op(name: str, op: str) -> str:
    """Return an op's own name with its type, "" where the name says no more than the type.

    >>> _name_op("loss/A", "MatMul"), _name_op("add_3", "AddV2")
    ('A MatMul', '')
    """
    own, kind = strip_number(name.rpartition("/")[2]).lower().strip("_"), op.lower().strip("_")
    says_type = len(own) > 2 and (kind.startswith(own) or own.startswith(kind))
    return "" if says_type else f"{name.rpartition('/')[2]} {op}"


def _label_copy(copy: Copy) -> tuple[str, str]:
    """Return what is copied: its size, and where there is room whose output it is, too."""
    own = copy.tensor.rpartition("/")[2]
    if copy.is_control:
        return "control", f"control signal of {own.removeprefix('^')}"
    return format_bytes(copy.size), f"{own} {format_bytes(copy.size)}"


def _draw_collectives(schedule: Schedule, rows: dict[int, int], critical: set[int]) -> Iterator[Bar]:
    """Yield one bar for each run of a collective, over the tracks of its members; several where others lie between."""
    graph, runs = schedule.estimated.graph, dict[tuple[int, int], list[int]]()
    for i, span in enumerate(schedule.trace.spans):
        if span.kind == "collective" and span.duration:
            runs.setdefault((graph.collective_of[span.node], span.start), []).append(i)
    for (number, _), found in runs.items():
        spans = [schedule.trace.spans[i] for i in found]
        one, first = graph.collectives[number], spans[0]
        label = f"{one.kind} {format_bytes(one.size)}"
        devices = join_devices(schedule.placement.devices, one.devices)
        tooltip = f"{label} between {devices}; {_write_tooltip(schedule, found[0])}"
        tracks = sorted(rows[span.track] for span in spans)
        starts = [track for track in tracks if track - 1 not in tracks]
        ends = [track for track in tracks if track + 1 not in tracks]
        for top, bottom in zip(starts, ends, strict=True):
            yield Bar(
                top, first.start / 1e9, first.end / 1e9, label, None, "collective", not critical.isdisjoint(found),
                tooltip, rows=bottom - top + 1,
            )  # fmt: skip


def _write_tooltip(schedule: Schedule, number: int) -> str:
    graph, span = schedule.estimated.graph, schedule.trace.spans[number]
    source = find_source(schedule.estimated, span)
    took = format_uncertain(span.duration, source.error) + (f" ({source.source})" if source.error else "")
    start = format_uncertain(span.start, schedule.uncertainty)
    parts = [f"{name_part(graph, span.node)} ({graph.nodes[span.node].op}), {took} from {start}"]
    if shared := describe_sharing(schedule, number):
        parts.append(shared)
    if bound := describe_bound(find_cost(schedule.estimated, span)):
        parts.append(bound)
    if span.start > span.ready and span.why in WAITED_FOR:
        waited = format_uncertain(span.start - span.ready, schedule.uncertainty)
        parts.append(f"waited {waited} {WAITED_FOR[span.why]}")
    if span.iteration:
        parts.append(f"iteration {span.iteration}")
    line = graph.source_line(span.node)
    return "; ".join(parts) + (f"; {line}" if line else "")
