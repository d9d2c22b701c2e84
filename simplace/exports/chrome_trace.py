"""Write a schedule in Chrome's trace event format, which Perfetto and chrome://tracing open.

A track is a thread (`tid`) of its own, grouped by what owns it (`pid`). Arrows (flow events) lead from what released
an op to the op where both are on different tracks; memory is one counter per device. Times are in microseconds.
"""

from __future__ import annotations

from typing import Any

from simplace.analysis.part_names import name_part
from simplace.analysis.schedule import Schedule
from simplace.analysis.time_sources import find_cost, find_source
from simplace.devices.device_name import LOCAL_TASK
from simplace.executor.trace import Span


def chrome_trace(schedule: Schedule) -> dict[str, Any]:
    """Return the trace as JSON-ready data; events are in the order of tracks, then time."""
    tracks = schedule.trace.tracks
    # Perfetto takes a thread that has its process's number for the main one, so no number is both.
    pids = {owner: len(tracks) + i for i, owner in enumerate(dict.fromkeys(track.owner for track in tracks))}
    events = [
        *_name_tracks(schedule, pids),
        *_list_slices(schedule, pids),
        *_list_flows(schedule, pids),
        *_list_counters(schedule, pids),
    ]
    return {
        "displayTimeUnit": "ns",
        "otherData": {
            "executor": schedule.executor,
            "costs": schedule.estimated.costs,
            "step (µs)": schedule.trace.makespan / 1000,
            "mean error of the step": round(schedule.uncertainty, 4),
            "source": "made by simplace",
        },
        "traceEvents": events,
    }


def _name_tracks(schedule: Schedule, pids: dict[str, int]) -> list[dict[str, Any]]:
    events = [
        {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": _shorten_owner(owner)}}
        for owner, pid in pids.items()
    ]
    place = {track: i for i, track in enumerate(schedule.trace.track_order)}
    for tid, track in enumerate(schedule.trace.tracks):
        pid = pids[track.owner]
        events.append({"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": track.name}})
        events.append(
            {"ph": "M", "name": "thread_sort_index", "pid": pid, "tid": tid, "args": {"sort_index": place[tid]}}
        )
    return events


def _shorten_owner(owner: str) -> str:
    short = owner.replace(f"{LOCAL_TASK}/device:", "")
    return "threads" if short == LOCAL_TASK else short


def _list_slices(schedule: Schedule, pids: dict[str, int]) -> list[dict[str, Any]]:
    critical = set(schedule.critical_path)
    return [
        _describe_slice(schedule, pids, i, i in critical)
        for own in schedule.trace.by_track
        for i in own
        if schedule.trace.spans[i].duration
    ]


def _describe_slice(schedule: Schedule, pids: dict[str, int], i: int, is_critical: bool) -> dict[str, Any]:
    span, graph = schedule.trace.spans[i], schedule.estimated.graph
    node = graph.nodes[span.node]
    arguments: dict[str, Any] = {"op": node.op, "device": node.device, "critical path": is_critical}
    arguments |= {"waited for": span.why, "waited (µs)": (span.start - span.ready) / 1000, "step": span.step}
    source = find_source(schedule.estimated, span)
    arguments |= {"time is": source.source, "mean error": source.error}
    if i in schedule.trace.shared:
        copy = schedule.trace.shared[i]
        links = list(dict.fromkeys(schedule.trace.links[way // 2].name for way in copy.ways))
        arguments |= {"alone (µs)": copy.alone / 1000, "passes": links}
    cost = find_cost(schedule.estimated, span)
    if cost is not None and cost.bound is not None:
        arguments |= {"bound by": cost.bound}
        arguments |= {} if cost.bound == "latency" else {"share of peak": round(cost.share, 4)}
    line = graph.source_line(span.node)
    if line:
        arguments["line"] = line
    if span.iteration:
        arguments["iteration"] = span.iteration
    name = name_part(graph, span.node)
    if span.kind == "collective":
        one = graph.collectives[graph.collective_of[span.node]]
        name = f"{one.kind} {node.name}"
        arguments |= {"bytes": one.size, "participants": one.participants}
    return {
        "ph": "X",
        "name": name,
        "cat": span.kind,
        "ts": span.start / 1000,
        "dur": span.duration / 1000,
        **_locate_slice(schedule, pids, span),
        "args": arguments,
    }


def _locate_slice(schedule: Schedule, pids: dict[str, int], span: Span) -> dict[str, int]:
    return {"pid": pids[schedule.trace.tracks[span.track].owner], "tid": span.track}


def _list_flows(schedule: Schedule, pids: dict[str, int]) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    spans = schedule.trace.spans
    for i, span in enumerate(spans):
        if span.cause < 0 or spans[span.cause].track == span.track or not span.duration:
            continue
        before = spans[span.cause]
        if not before.duration or span.why not in ("dependency", "thread"):
            continue
        common = {"name": "releases", "cat": "flow", "id": i}
        inside = before.end - 1  # an arrow starts from the slice around it, and a slice ends before its end
        events.append({"ph": "s", **common, "ts": inside / 1000, **_locate_slice(schedule, pids, before)})
        start = {"ph": "f", "bp": "e", **common, "ts": span.start / 1000}
        events.append({**start, **_locate_slice(schedule, pids, span)})
    return events


def _list_counters(schedule: Schedule, pids: dict[str, int]) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    for use in schedule.memory:
        if len(use.series) < 2 and not use.resident:
            continue
        pid = pids.get(use.device, len(schedule.trace.tracks))
        name = f"memory of {_shorten_owner(use.device)}"
        events += [
            {"ph": "C", "name": name, "pid": pid, "tid": 0, "ts": time / 1000, "args": {"bytes": size}}
            for time, size in use.series
        ]
    return events
