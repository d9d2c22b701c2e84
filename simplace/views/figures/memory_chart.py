"""Describe a chart of the live bytes on each device over time, by layer."""

from __future__ import annotations

from collections.abc import Sequence

from simplace.analysis.memory import Held, MemoryUse, Resize, keep_size
from simplace.analysis.memory_kinds import find_origin, name_kept
from simplace.analysis.part_names import name_part
from simplace.analysis.schedule import Schedule
from simplace.program.known_names import strip_number
from simplace.result import Placed
from simplace.views.figures.captions import describe_placement, shorten_title
from simplace.views.figures.memory_bands import DeviceBands, choose_bands
from simplace.views.text.cost_sentences import format_makespan, format_uncertain
from simplace.views.text.quantities import format_bytes
from viz.area import Area, AreaChart

_ALIKE = 3  # devices: from so many on, those alike are drawn as one
_CLOSE = 0.02  # of the bytes at the peak: so much may differ between devices that are alike
_TINY = 1e-3  # of the largest peak: a device with less is named, not drawn


def memory_chart(
    schedule: Schedule, uses: Sequence[MemoryUse] | None = None, resize: Resize = keep_size
) -> AreaChart:  # fmt: skip
    """Return the chart, a panel a device; devices that hold nearly nothing are named in its caption.

    Three devices or more that are alike are one panel. `uses` are those to draw instead of the schedule's own, with
    `resize`, by which their tensors are larger or smaller than the schedule's.
    """
    uses = schedule.memory if uses is None else uses
    largest = max((use.peak for use in uses), default=0)
    drawn = [use for use in uses if use.peak > _TINY * largest]
    families = _fold_alike(choose_bands(schedule, drawn, resize))
    areas = tuple(_make_area(schedule, family) for family in families)
    placement = schedule.placement
    title = f"{shorten_title(placement.program.title)}: {_tell_peak(schedule, uses)}"
    over = format_makespan(schedule) if resize is keep_size else "a step, at the times of the program's own batch"
    caption = _write_caption(schedule, over, uses, drawn)
    said = f"{describe_placement(Placed(placement), 'Simulated memory')} {title}; {caption}."
    return AreaChart(
        title, caption, areas, schedule.trace.makespan / 1e9, _format_amount, said, error=schedule.uncertainty
    )


def _fold_alike(devices: Sequence[DeviceBands]) -> list[list[DeviceBands]]:
    """Group the devices: those with the same limit and the same layers, nearly as large, are alike."""
    families: list[list[DeviceBands]] = []
    for one in devices:
        found = next((family for family in families if _is_alike(family[0], one)), None)
        if found is None:
            families.append([one])
        else:
            found.append(one)
    return [part for family in families
            for part in ([family] if len(family) >= _ALIKE else [[one] for one in family])]  # fmt: skip


def _is_alike(one: DeviceBands, other: DeviceBands) -> bool:
    layers = [sorted(map(strip_number, found.layers)) for found in (one, other)]
    return (
        layers[0] == layers[1]
        and one.use.limit == other.use.limit
        and abs(one.use.peak - other.use.peak) <= _CLOSE * one.use.peak
    )


def _make_area(schedule: Schedule, family: Sequence[DeviceBands]) -> Area:
    use = max(family, key=lambda found: found.use.peak).use
    bands = next(found.bands for found in family if found.use is use)
    short = [schedule.placement.devices.by_name[found.use.device].short for found in family]
    name = short[0] if len(short) == 1 else f"{short[0]} … {short[-1]}, {len(short)} devices alike"
    limit = f" of {format_bytes(use.limit)}" if use.limit else ""
    shown = "" if len(short) == 1 else f" ({schedule.placement.devices.by_name[use.device].short} is drawn)"
    return Area(
        f"{name}: up to {format_bytes(use.peak)}{limit}{shown}",
        bands,
        float(use.limit),
        f"at the peak, {format_uncertain(use.peak_at, schedule.uncertainty)}: {format_bytes(use.peak)}",
        _list_notes(schedule, use),
        marks_peak=True,
        weight=float(use.peak),
    )


def _tell_peak(schedule: Schedule, uses: Sequence[MemoryUse]) -> str:
    """Return the largest peak of all devices."""
    peak = max(uses, key=lambda use: use.peak, default=None)
    if peak is None or not peak.peak:
        return "no device has live tensors"
    of = f" of {format_bytes(peak.limit)}" if peak.limit else ""
    return f"up to {format_bytes(peak.peak)}{of} on {schedule.placement.devices.by_name[peak.device].short}"


def _write_caption(schedule: Schedule, over: str, uses: Sequence[MemoryUse], drawn: Sequence[MemoryUse]) -> str:
    devices = schedule.placement.devices.by_name
    small = [f"{devices[use.device].short} {format_bytes(use.peak)}" for use in uses if use.peak and use not in drawn]
    parts = [
        f"memory over {over}",
        f"costs {schedule.estimated.costs}",
        *([f"not drawn: {', '.join(small)}"] if small else []),
    ]
    return "; ".join(parts)


def _format_amount(amount: float) -> str:
    return format_bytes(round(amount))


def _list_notes(schedule: Schedule, use: MemoryUse) -> tuple[str, ...]:
    lines = [f"largest: {_name_tensor(schedule, held)} {format_bytes(held.size)}" for held in use.holders[:1]]
    if use.runs_out >= 0:
        lines.append(f"out of memory from {name_part(schedule.estimated.graph, use.runs_out)} on")
    return tuple(lines)


def _name_tensor(schedule: Schedule, held: Held) -> str:
    graph = schedule.estimated.graph
    part, origin = graph.nodes[held.node], find_origin(schedule, held.node)
    name = name_kept(schedule, held)
    scopes = (schedule.placed.graph.names[origin] if origin >= 0 else part.name).split("/")
    if part.copy >= 0:  # such as w/read, of which the last word alone tells little
        slot = graph.copies[part.copy].slot
        return f"copy of {'/'.join(scopes[-2:])}{f':{slot}' * (slot > 0)}"
    return f"{name or scopes[-1]}{f':{held.slot}' * (held.slot > 0)}"
