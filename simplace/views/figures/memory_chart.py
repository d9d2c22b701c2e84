"""Turn a schedule into a chart of the bytes alive on each device over time."""

from __future__ import annotations

from simplace.analysis.memory import MemoryUse
from simplace.analysis.schedule import Schedule
from simplace.result import Placed
from simplace.views.figures.captions import facts
from simplace.views.figures.placement_figure import numbered
from simplace.views.text.quantities import size
from simplace.views.text.schedule_tables import duration
from viz import Group
from viz.area import Area, AreaChart

_HOLDERS = 5


def memory_chart(schedule: Schedule) -> AreaChart:
    """Describe the chart; devices that hold nothing are left out. Notes name the peak and what holds it."""
    placement = schedule.placement
    index = {name: i for i, name in numbered(placement)}
    areas = tuple(
        Area(
            _group(schedule, use, index[use.device]),
            _points(use),
            float(use.limit),
            _notes(schedule, use),
        )
        for use in schedule.memory
        if use.peak
    )
    peak = max(schedule.memory, key=lambda use: use.peak, default=None)
    caption = "no device holds anything"
    if peak is not None and peak.peak:
        device = placement.devices.by_name[peak.device].short
        caption = f"largest peak {size(peak.peak)} on {device}; costs {schedule.priced.model.name}"
    title = f"{placement.program.name}: memory over {duration(schedule.trace.makespan)}"
    said = f"{facts(Placed(placement), 'Simulated memory')} {caption[:1].upper()}{caption[1:]}."
    return AreaChart(title, caption, areas, schedule.trace.makespan / 1e9, _bytes, said)


def _points(use: MemoryUse) -> tuple[tuple[float, float], ...]:
    """Return the steps with the peak among them, though it may last no time at all."""
    points = list(use.series)
    if all(amount < use.peak for _, amount in points):
        at = next((i for i, (time, _) in enumerate(points) if time >= use.peak_at), len(points))
        points.insert(at, (use.peak_at, use.peak))
    return tuple((time / 1e9, float(amount)) for time, amount in points)


def _bytes(amount: float) -> str:
    return size(round(amount))


def _group(schedule: Schedule, use: MemoryUse, index: int) -> Group:
    device = schedule.placement.devices.by_name[use.device]
    limit = f" of {size(use.limit)}" if use.limit else ""
    return Group(device.name, f"{device.short}: up to {size(use.peak)}{limit}", kind=device.type, index=index)


def _notes(schedule: Schedule, use: MemoryUse) -> tuple[str, ...]:
    nodes = schedule.priced.graph.nodes
    lines = [f"at the peak, {duration(use.peak_at)}:"]
    for held in use.holders[:_HOLDERS]:
        name = nodes[held.node].name
        origin = nodes[held.node].origin
        variable = schedule.placed.notes(origin).variable if origin >= 0 else ""
        lines.append(f"{size(held.size)}  {variable or name}{f':{held.slot}' if held.slot > 0 else ''}")
    if use.runs_out >= 0:
        lines.append(f"does not fit from {nodes[use.runs_out].name} on")
    return tuple(lines)
