"""Describe a chart of how many ops of each device run, and how many are ready and wait, over time."""

from __future__ import annotations

from collections.abc import Iterable

from simplace.analysis.intervals import Steps
from simplace.analysis.parallelism import DeviceParallelism
from simplace.analysis.schedule import Schedule
from simplace.result import Placed
from simplace.views.figures.captions import describe_placement, shorten_title
from simplace.views.figures.placement_figure import number_devices
from simplace.views.figures.timeline import describe_settings
from simplace.views.text.cost_sentences import format_makespan
from simplace.views.text.quantities import format_count
from viz.area import Area, AreaChart, Band
from viz.stack import Points, add_up

_HUES = 8  # of devices: after them come the same with lines upon them


def parallelism_chart(schedule: Schedule) -> AreaChart:
    """Return the chart: ops that run in one panel, those that are ready and wait in another, a band a device.

    Devices on which nothing takes time have no band. Each panel has a scale of its own: many more ops wait than run.
    """
    placement = schedule.placement
    widths = [width for width in schedule.widths if width.running]
    caption = f"parallelism over {format_makespan(schedule)}; {describe_settings(schedule)}"
    short = placement.devices.by_name
    widest = [f"at most {format_count(w.widest, 'op')} at once on {short[w.device].short}" for w in widths]
    found = "; ".join(widest) or "nothing takes time"
    said = (
        f"{describe_placement(Placed(placement), 'Simulated parallelism')} {found[:1].upper()}{found[1:]}; {caption}."
    )
    busy = tuple((time, sum(amounts)) for time, amounts in add_up([_list_points(width.working) for width in widths]))
    title = f"{shorten_title(placement.program.title)}: {_tell_most(busy)}"
    areas = (_draw_running(schedule, widths, busy), _draw_waiting(schedule, widths)) if widths else ()
    return AreaChart(
        title, caption, areas, schedule.trace.makespan / 1e9, description=said, least=1.0, error=schedule.uncertainty
    )


def _tell_most(busy: Points) -> str:
    """Return how many threads and streams are busy at once.

    >>> _tell_most(((0.0, 3.0), (1.0, 1.0))), _tell_most(())
    ('up to 3 threads and streams busy at once', 'nothing takes time')
    """
    most = max((int(amount) for _, amount in busy), default=0)
    if most > 1:
        return f"up to {most:,} threads and streams busy at once"
    return "one thread or stream busy at a time" if most else "nothing takes time"


def _draw_running(schedule: Schedule, widths: list[DeviceParallelism], busy: Points) -> Area:
    bands = tuple(
        _make_band(schedule, width, _list_points(width.running), f"{width.mean:.2f}, at most {width.widest:,}")
        for width in widths
    )
    most = max(int(amount) for _, amount in busy)
    return Area(
        "ops that run",
        bands,
        heading="ops at once, where any runs",
        line=busy,
        meaning=f"busy threads and streams: at most {most:,}",
        notes=("those that do a part of an op included",),
    )


def _draw_waiting(schedule: Schedule, widths: list[DeviceParallelism]) -> Area:
    bands = []
    for width in widths:
        points = _subtract(_list_points(width.ready), _list_points(width.running))
        most = max(int(amount) for _, amount in points)
        bands.append(_make_band(schedule, width, points, f"at most {most:,}"))
    return Area("ops that are ready and wait for a thread or stream", tuple(bands), heading="ops that wait at once")


def _make_band(schedule: Schedule, width: DeviceParallelism, points: Points, note: str) -> Band:
    device = schedule.placement.devices.by_name[width.device]
    index = next(i for i, name in number_devices(schedule.placement) if name == width.device)
    return Band(device.short, points, device.type, index, "upright" if index // _HUES % 2 else "plain", note)


def _list_points(steps: Steps) -> Points:
    return tuple((time / 1e9, float(count)) for time, count in steps)


def _subtract(points: Points, others: Points) -> Points:
    """Return how much larger the first amounts are.

    >>> _subtract(((0, 3.0), (2, 1.0)), ((1, 1.0), (2, 1.0)))
    ((0, 3.0), (1, 2.0), (2, 0.0))
    """
    ends: Iterable[tuple[float, tuple[float, ...]]] = add_up([points, others])
    return tuple((time, more - less) for time, (more, less) in ends)
