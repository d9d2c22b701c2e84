"""Describe a chart of how many ops of each device run, and how many are ready, over time."""

from __future__ import annotations

from simplace.analysis.intervals import Steps
from simplace.analysis.parallelism import DeviceParallelism
from simplace.analysis.schedule import Schedule
from simplace.result import Placed
from simplace.views.figures.captions import describe_placement
from simplace.views.figures.placement_figure import number_devices
from simplace.views.figures.timeline import describe_settings
from simplace.views.text.cost_sentences import format_makespan
from simplace.views.text.quantities import format_count
from viz import Group
from viz.area import Area, AreaChart, Points

KEY = ("running ops", "ready ops that wait", "busy threads and streams, parts of ops included")


def parallelism_chart(schedule: Schedule) -> AreaChart:
    """Return the chart; devices on which nothing takes time are left out. Notes sum up each panel."""
    placement = schedule.placement
    index = {name: i for i, name in number_devices(placement)}
    areas = tuple(
        Area(
            _describe_device(schedule, width, index[width.device]),
            _list_points(width.running),
            notes=_list_notes(width),
            back=_list_points(width.ready),
            line=_list_points(width.working),
        )
        for width in schedule.widths
        if width.running
    )
    title = f"{placement.program.title}: parallelism over {format_makespan(schedule)}"
    caption = describe_settings(schedule)
    short = placement.devices.by_name
    widest = [
        f"at most {format_count(w.widest, 'op')} at once on {short[w.device].short}"
        for w in schedule.widths
        if w.running
    ]
    found = "; ".join(widest) or "nothing takes time"
    said = f"{describe_placement(Placed(placement), 'Simulated parallelism')} {found}; {caption}."
    return AreaChart(
        title, caption, areas, schedule.trace.makespan / 1e9, description=said, key=KEY if areas else (), least=1.0
    )


def _list_points(steps: Steps) -> Points:
    return tuple((time / 1e9, float(count)) for time, count in steps)


def _describe_device(schedule: Schedule, width: DeviceParallelism, index: int) -> Group:
    device = schedule.placement.devices.by_name[width.device]
    return Group(device.name, f"{device.short}: {width.mean:.2f} ops at once on average", kind=device.type, index=index)


def _list_notes(width: DeviceParallelism) -> tuple[str, ...]:
    return (
        f"at most {format_count(width.widest, 'op')} at once",
        f"at most {width.most_ready:,} running or ready",
        f"at most {width.most_working:,} busy threads and streams",
    )
