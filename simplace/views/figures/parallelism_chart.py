"""Turn a schedule into a chart of how many ops of each device run, and how many are ready, over time."""

from __future__ import annotations

from simplace.analysis.intervals import Steps
from simplace.analysis.parallelism import Width
from simplace.analysis.schedule import Schedule
from simplace.result import Placed
from simplace.views.figures.captions import facts
from simplace.views.figures.placement_figure import numbered
from simplace.views.figures.timeline import settings
from simplace.views.text.quantities import plural
from simplace.views.text.schedule_tables import duration
from viz import Group
from viz.area import Area, AreaChart, Points

KEY = ("ops that run", "ready, but waiting", "threads and streams at work, also on parts of ops")


def width_chart(schedule: Schedule) -> AreaChart:
    """Describe the chart; devices on which nothing takes time are left out. Notes sum each panel up."""
    placement = schedule.placement
    index = {name: i for i, name in numbered(placement)}
    areas = tuple(
        Area(
            _group(schedule, width, index[width.device]),
            _points(width.running),
            notes=_notes(width),
            back=_points(width.ready),
            line=_points(width.working),
        )
        for width in schedule.widths
        if width.running
    )
    title = f"{placement.program.name}: width over {duration(schedule.trace.makespan)}"
    caption = settings(schedule)
    short = placement.devices.by_name
    widest = [
        f"at most {plural(w.widest, 'op')} at once on {short[w.device].short}" for w in schedule.widths if w.running
    ]
    said = f"{facts(Placed(placement), 'Simulated width')} {'; '.join(widest) or 'nothing takes time'}; {caption}."
    return AreaChart(
        title, caption, areas, schedule.trace.makespan / 1e9, description=said, key=KEY if areas else (), least=1.0
    )


def _points(steps: Steps) -> Points:
    return tuple((time / 1e9, float(count)) for time, count in steps)


def _group(schedule: Schedule, width: Width, index: int) -> Group:
    device = schedule.placement.devices.by_name[width.device]
    return Group(device.name, f"{device.short}: {width.mean:.2f} ops at once on average", kind=device.type, index=index)


def _notes(width: Width) -> tuple[str, ...]:
    return (
        f"at most {plural(width.widest, 'op')} at once",
        f"at most {width.most_ready:,} running or ready",
        f"at most {width.most_working:,} threads and streams at work",
    )
