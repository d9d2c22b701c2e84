"""Write a simulated schedule as columns for the page: tracks, events, the time of each node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

from simplace.analysis.schedule import Schedule
from simplace.analysis.time_sources import find_source
from simplace.costs.cost_model import Source
from simplace.executor.trace import SpanKind, Why
from simplace.report.packed_sentences import FIRST
from simplace.views.figures.timeline import get_track_heading
from simplace.views.text.cost_sentences import describe_bound
from simplace.views.text.left_out_phrases import WHY_LEFT_OUT
from simplace.views.text.sharing_phrases import describe_sharing

_KINDS: tuple[SpanKind, ...] = get_args(SpanKind)
_SOURCES: tuple[Source, ...] = get_args(Source)
_GUESSED = _SOURCES.index("guessed")
_WHYS: tuple[Why, ...] = get_args(Why)


def schedule_data(schedule: Schedule) -> dict[str, Any]:
    """Return tracks and events in display order; times are in nanoseconds.

    Events are sorted by track and start. A start is counted from the end of the event before it, so that numbers
    stay short. "node" is the node of the placed graph, -1 for what the partition made; "copy" is -1 for none;
    "sharing" says of copies which shared link slowed them down.
    """
    trace, graph = schedule.trace, schedule.estimated.graph
    tracks = [i for i in trace.track_order if any(trace.spans[s].duration for s in trace.by_track[i])]
    order = [s for i in tracks for s in trace.by_track[i] if trace.spans[s].duration]
    spans = [trace.spans[s] for s in order]
    nodes = [graph.nodes[span.node] for span in spans]
    critical = set(schedule.critical_path)
    found = [find_source(schedule.estimated, span) for span in spans]
    sources = {one: i for i, one in enumerate(sorted(set(found)))}
    origin = _list_origins(schedule)
    return {
        "makespan": trace.makespan,
        "uncertainty": round(schedule.uncertainty, 3),
        "sources": [{"source": one.source, "error": round(one.error, 3)} for one in sources],
        "source": [sources[one] for one in found],
        "kinds": _KINDS,
        "whys": _WHYS,
        "tracks": [
            {"name": trace.tracks[i].name, "owner": get_track_heading(schedule, trace.tracks[i])} for i in tracks
        ],
        "counts": [sum(1 for s in trace.by_track[i] if trace.spans[s].duration) for i in tracks],
        "gap": list(_list_gaps(schedule, tracks)),
        "duration": [span.duration for span in spans],
        "kind": [_KINDS.index(span.kind) for span in spans],
        "waited": [span.start - span.ready for span in spans],
        "why": [_WHYS.index(span.why) for span in spans],
        "critical": [int(s in critical) for s in order],
        "node": [max(graph.node_of_program(span.node) - FIRST, -1) for span in spans],
        "copy": [node.copy for node in nodes],
        "sharing": {i: said for i, s in enumerate(order) if (said := describe_sharing(schedule, s))},
        "times": _list_times(schedule),
        "errors": _list_errors(schedule),
        "leftOut": {node - FIRST: WHY_LEFT_OUT[why] for node, why in schedule.left_out.items()},
        "origins": _SOURCES[: max([_GUESSED, *origin]) + 1],  # up to the last that occurs
        "origin": origin,
        **_list_bounds(schedule),
    }


def _list_gaps(schedule: Schedule, tracks: list[int]) -> Iterator[int]:
    trace = schedule.trace
    for track in tracks:
        before = 0
        for number in trace.by_track[track]:
            span = trace.spans[number]
            if span.duration:
                yield span.start - before
                before = span.end


def _list_times(schedule: Schedule) -> list[int]:
    """Return the time of one execution of each node of the placed graph on threads and streams, without its copies."""
    estimated = schedule.estimated
    times = [0] * (len(schedule.placement.graph) - FIRST)
    for i, cost in enumerate(estimated.kernels):
        node = estimated.graph.node_of_program(i)
        if node >= FIRST:
            times[node - FIRST] = round((cost.host_s + cost.device_s) * 1e9)
    return times


def _list_errors(schedule: Schedule) -> list[float]:
    """Return how far off the time of each node of the placed graph is in the mean, as a share."""
    estimated = schedule.estimated
    errors = [0.0] * (len(schedule.placement.graph) - FIRST)
    for i, cost in enumerate(estimated.kernels):
        node = estimated.graph.node_of_program(i)
        if node >= FIRST and cost.host_s + cost.device_s:
            errors[node - FIRST] = round(cost.off, 3)
    return errors


def _list_origins(schedule: Schedule) -> list[int]:
    """Return where the time of each node of the placed graph was taken from."""
    estimated = schedule.estimated
    origins = [_GUESSED] * (len(schedule.placement.graph) - FIRST)
    for i, cost in enumerate(estimated.kernels):
        node = estimated.graph.node_of_program(i)
        if node >= FIRST and cost.host_s + cost.device_s:
            origins[node - FIRST] = _SOURCES.index(cost.source)
    return origins


def _list_bounds(schedule: Schedule) -> dict[str, Any]:
    """Return the phrases of what bounds GPU kernels, and which of them each node of the placed graph has."""
    estimated = schedule.estimated
    told = [""] * (len(schedule.placement.graph) - FIRST)
    for i, cost in enumerate(estimated.kernels):
        node = estimated.graph.node_of_program(i)
        if node >= FIRST:
            told[node - FIRST] = describe_bound(cost)
    phrases = {phrase: number for number, phrase in enumerate(sorted({"", *told}))}
    return {"bounds": list(phrases), "bound": [phrases[phrase] for phrase in told]}
