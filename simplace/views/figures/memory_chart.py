"""Describe a chart of the live bytes on each device over time."""

from __future__ import annotations

from collections.abc import Sequence

from simplace.analysis.memory import MemoryUse
from simplace.analysis.schedule import Schedule
from simplace.result import Placed
from simplace.views.figures.captions import describe_placement
from simplace.views.figures.placement_figure import number_devices
from simplace.views.text.cost_sentences import format_makespan
from simplace.views.text.quantities import format_bytes, format_duration
from viz import Group
from viz.area import Area, AreaChart

_HOLDERS = 5


def memory_chart(schedule: Schedule, uses: Sequence[MemoryUse] | None = None) -> AreaChart:
    """Return the chart; devices without live tensors are left out. Notes name the peak and its largest tensors.

    `uses` are those to draw instead of the schedule's own.
    """
    uses = schedule.memory if uses is None else uses
    placement = schedule.placement
    index = {name: i for i, name in number_devices(placement)}
    areas = tuple(
        Area(
            _describe_device(schedule, use, index[use.device]),
            _list_points(use),
            float(use.limit),
            _list_notes(schedule, use),
        )
        for use in uses
        if use.peak
    )
    peak = max(uses, key=lambda use: use.peak, default=None)
    caption = "no device has live tensors"
    if peak is not None and peak.peak:
        device = placement.devices.by_name[peak.device].short
        caption = f"largest peak {format_bytes(peak.peak)} on {device}; costs {schedule.estimated.model.name}"
    title = f"{placement.program.title}: memory over {format_makespan(schedule)}"
    said = f"{describe_placement(Placed(placement), 'Simulated memory')} {caption[:1].upper()}{caption[1:]}."
    return AreaChart(title, caption, areas, schedule.trace.makespan / 1e9, _format_bytes, said)


def _list_points(use: MemoryUse) -> tuple[tuple[float, float], ...]:
    """Return the steps with the peak among them, though it may last no time at all."""
    points = list(use.series)
    if all(amount < use.peak for _, amount in points):
        at = next((i for i, (time, _) in enumerate(points) if time >= use.peak_at), len(points))
        points.insert(at, (use.peak_at, use.peak))
    return tuple((time / 1e9, float(amount)) for time, amount in points)


def _format_bytes(amount: float) -> str:
    return format_bytes(round(amount))


def _describe_device(schedule: Schedule, use: MemoryUse, index: int) -> Group:
    device = schedule.placement.devices.by_name[use.device]
    limit = f" of {format_bytes(use.limit)}" if use.limit else ""
    return Group(device.name, f"{device.short}: up to {format_bytes(use.peak)}{limit}", kind=device.type, index=index)


def _list_notes(schedule: Schedule, use: MemoryUse) -> tuple[str, ...]:
    nodes = schedule.estimated.graph.nodes
    lines = [f"at the peak, {format_duration(use.peak_at)}:"]
    for held in use.holders[:_HOLDERS]:
        name = nodes[held.node].name
        origin = nodes[held.node].origin
        variable = schedule.placed.notes(origin).variable if origin >= 0 else ""
        lines.append(f"{format_bytes(held.size)}  {variable or name}{f':{held.slot}' if held.slot > 0 else ''}")
    if use.runs_out >= 0:
        lines.append(f"out of memory from {nodes[use.runs_out].name} on")
    return tuple(lines)
