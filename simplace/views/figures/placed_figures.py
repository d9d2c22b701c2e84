"""The figures that one placement, and one schedule, can be drawn as, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from simplace.analysis.schedule import Schedule
from simplace.result import Placed
from simplace.views.figures.colocation_figure import colocation_figure
from simplace.views.figures.memory_chart import memory_chart
from simplace.views.figures.overview_figure import overview_figure
from simplace.views.figures.parallelism_chart import parallelism_chart
from simplace.views.figures.partition_figure import partition_figure
from simplace.views.figures.placement_figure import placement_figure
from simplace.views.figures.timeline import draw_timeline
from viz import Figure
from viz.area import AreaChart
from viz.gantt import Gantt

FIGURES: Mapping[str, Callable[[Placed, int], Figure]] = {
    "overview": overview_figure,
    "placement": placement_figure,
    "partition": partition_figure,
    "colocation": colocation_figure,
}

CHARTS: Mapping[str, Callable[[Schedule], Gantt | AreaChart]] = {
    "timeline": draw_timeline,
    "parallelism": parallelism_chart,
    "memory": memory_chart,
}
