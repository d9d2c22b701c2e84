"""Write a schedule as JSON-ready data, schema simplace/schedule/1. Times are whole nanoseconds."""

from __future__ import annotations

from dataclasses import asdict, fields
from math import isinf
from typing import Any

from simplace.analysis.device_comparison import DeviceComparison
from simplace.analysis.device_time import CAUSES, DeviceTime
from simplace.analysis.link_use import LinkUse
from simplace.analysis.memory import MemoryUse
from simplace.analysis.path_groups import CauseTime, PathShare, group_by_layer, group_by_op, rank_copy_causes
from simplace.analysis.schedule import Schedule
from simplace.analysis.step_findings import find_in_step
from simplace.analysis.time_sources import find_cost, find_source
from simplace.analysis.utilisation import CardUse
from simplace.executor.step_options import Threads
from simplace.executor.trace import Span
from simplace.explain.sentences import state_reason
from simplace.exports.communication_report import report_traffic
from simplace.exports.finding_report import report_findings
from simplace.exports.memory_report import report_held

SCHEMA = "simplace/schedule/1"

_HOLDERS = 10  # tensors listed where memory is full


def report_schedule(schedule: Schedule, verdict: str) -> dict[str, Any]:
    """Return the whole schedule as dictionaries, lists, strings and numbers, with the verdict on it in words."""
    trace, threads = schedule.trace, schedule.threads
    return {
        "schema": SCHEMA,
        "program": schedule.placement.program.name,
        "label": schedule.placement.program.title,
        "executor": schedule.executor,
        "costs": schedule.estimated.costs,
        "threads": {each.name: getattr(threads, each.name) for each in fields(Threads)},
        "grappler": schedule.execution.options.grappler,
        "left_out": {schedule.placement.graph.names[node]: why for node, why in schedule.left_out.items()},
        "makespan": trace.makespan,
        "makespan_error": round(schedule.uncertainty, 4),
        "steps": list(trace.steps),
        "longest_chain": schedule.longest_chain,
        "time_sources": [
            {"source": one.source, "share": round(one.share, 6), "error": round(one.error, 6)}
            for one in schedule.sources
        ],
        "lanes": [{"name": track.name, "kind": track.kind, "owner": track.owner} for track in trace.tracks],
        "spans": [_report_span(schedule, i) for i in range(len(trace.spans))],
        "critical_path": list(schedule.critical_path),
        "critical_path_by_layer": [_report_share(share) for share in group_by_layer(schedule)],
        "critical_path_by_op": [_report_share(share) for share in group_by_op(schedule)],
        "copy_causes": [_report_cause(schedule, one) for one in rank_copy_causes(schedule)],
        "findings": report_findings(find_in_step(schedule)),
        "busy": [
            {
                "name": one.name,
                "busy": one.busy,
                "share": round(one.share, 6),
                "error": round(schedule.measure_track_error(track), 4),
            }
            for track, one in enumerate(schedule.busy_tracks)
        ],
        "devices": [
            {
                "name": one.name,
                "busy": one.busy,
                "share": round(one.share, 6),
                "error": round(schedule.measure_kernels_error([device]), 4),
            }
            for device, one in zip(schedule.estimated.graph.devices, schedule.busy_devices, strict=True)
        ],
        "shared_links": [_report_link(use) for use in schedule.shared_links],
        "split_cards": [_report_card(card) for card in schedule.split_cards],
        "device_times": [_report_device_time(schedule, one) for one in schedule.device_times],
        "verdict": verdict,
        "communication": report_traffic(schedule.estimated.graph.traffic),
        "waiting": dict(schedule.waiting_by_cause),
        "width": [list(step) for step in schedule.width],
        "memory": [_report_memory(schedule, use) for use in schedule.memory],
        "unordered_writes": [
            {key: schedule.placed.graph.names[getattr(pair, key)] for key in ("variable", "first", "second")}
            for pair in schedule.unordered_writes
        ],
        "loops": [{"name": loop.name, "trips": loop.trips, "how": loop.how} for loop in schedule.loops],
        "branches": [
            {"predicate": branch.predicate, "taken": branch.taken, "how": branch.how}
            for branch in schedule.flow.branches
        ],
        "assumptions": [
            {"kind": one.kind, "count": one.count, "example": one.example, "value": one.value}
            for one in schedule.estimated.assumptions
        ],
    }


def report_comparison(found: DeviceComparison) -> dict[str, Any]:
    """Return a step on other devices and with larger batches; `worth_from` counts examples, null where it never is."""
    least = found.worth_from
    return {
        "devices": [device.name for device in found.after.placed.devices],
        "examples": {"before": found.examples[0], "after": found.examples[1]},
        "worth_from": None if least is None else least.factor * found.examples[0],
        "unknown": found.unknown or None,
        "trials": [
            {**asdict(one), "change": found.change(one), "change_error": round(found.find_change_error(one), 4)}
            for one in found.trials
        ],
    }


def _report_share(share: PathShare) -> dict[str, Any]:
    return {**asdict(share), "error": round(share.error, 4)}


def _report_cause(schedule: Schedule, one: CauseTime) -> dict[str, Any]:
    """Return a decision that causes copies: the node that decided, the sentence, and the copies' time on the path."""
    placement, reason = schedule.placement, one.cause.reason
    return {
        "node": placement.graph.names[reason.node], "rule": reason.rule, "source": one.cause.source,
        "copies": one.count, "bytes": one.size, "on_critical_path": one.time, "error": round(one.error, 4),
        "text": str(state_reason(placement, reason)),
    }  # fmt: skip


def _report_device_time(schedule: Schedule, one: DeviceTime) -> dict[str, Any]:
    """Return where the time of a device goes: "busy", "idle" and what it waits for add up to the step."""
    return {
        "device": one.device,
        "kernels": one.kernels,
        "busy": one.busy,
        "idle": one.idle,
        "waits": {cause: one.waits[cause].time if cause in one.waits else 0 for cause in CAUSES},
        "error": round(schedule.uncertainty, 4),
    }


def _report_span(schedule: Schedule, number: int) -> dict[str, Any]:
    span = schedule.trace.spans[number]
    node = schedule.estimated.graph.nodes[span.node]
    found = {
        "node": node.name, "op": node.op, "device": node.device, "lane": span.track, "kind": span.kind,
        "start": span.start, "end": span.end, "ready": span.ready, "cause": span.cause, "why": span.why,
        "step": span.step, "iteration": span.iteration, "line": schedule.estimated.graph.source_line(span.node),
        "cost": _report_cost(schedule, span),
    }  # fmt: skip
    return {**found, "sharing": _report_sharing(schedule, number)} if number in schedule.trace.shared else found


def _report_sharing(schedule: Schedule, number: int) -> dict[str, Any]:
    """Report the shared links that a copy or a member passed, what it takes alone, what slowed it down, with whom."""
    copy = schedule.trace.shared[number]
    return {
        "alone": copy.alone,
        "links": list(dict.fromkeys(way // 2 for way in copy.ways)),
        "slowed_by": None if copy.slowed_by < 0 else copy.slowed_by,
        "others": list(copy.others),
    }


def _report_link(use: LinkUse) -> dict[str, Any]:
    return {
        "name": use.link.name,
        "bandwidth": None if isinf(use.link.bandwidth) else use.link.bandwidth,
        "sharers": list(use.link.sharers),
        "copies": use.copies,
        "members": use.members,
        "busy": use.busy,
        "share": round(use.share, 6),
        "took": use.took,
        "alone": use.alone,
    }


def _report_card(card: CardUse) -> dict[str, Any]:
    return {"number": card.number, "gpus": list(card.gpus), "busy": card.busy, "share": round(card.share, 6)}


def _report_cost(schedule: Schedule, span: Span) -> dict[str, Any]:
    """Report where a time comes from, and for a modelled GPU kernel what bounds it, with its share of the peak."""
    cost, source = find_cost(schedule.estimated, span), find_source(schedule.estimated, span)
    found: dict[str, Any] = {"source": source.source, "error": source.error}
    if cost is None or cost.bound is None:
        return found
    return {**found, "bound": cost.bound, "share": round(cost.share, 4)}


def _report_memory(schedule: Schedule, use: MemoryUse) -> dict[str, Any]:
    nodes = schedule.estimated.graph.nodes
    return {
        "device": use.device,
        "resident": use.resident,
        "peak": use.peak,
        "peak_at": use.peak_at,
        "limit": use.limit or None,
        "holders": [report_held(schedule, held) for held in use.holders[:_HOLDERS]],
        "series": [list(point) for point in use.series],
        "runs_out": None
        if use.runs_out < 0
        else {
            "node": nodes[use.runs_out].name,
            "time": use.runs_out_at,
            "alive": [report_held(schedule, held) for held in use.alive_then[:_HOLDERS]],
        },
    }
