"""The record of a chart of amounts over time: what is drawn, not how it looks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from viz.errors import FigureError
from viz.names import visible
from viz.stack import Points

Pattern = Literal["plain", "upright", "level"]


@dataclass(frozen=True, slots=True)
class Band:
    """Describe one of the amounts that a panel stacks: `points` list (time in seconds, amount from then on).

    They are in the order of time; of two points of one time, the first is a peak that lasts no time. `kind` and `index`
    choose the colour as those of a `Group` do, `pattern` lines upon it. `note` stands before the title in the key.
    """

    title: str
    points: Points
    kind: str = "CPU"
    index: int = 0
    pattern: Pattern = "plain"
    note: str = ""


@dataclass(frozen=True, slots=True)
class Area:
    """Describe one panel: bands, the first at the bottom, and beside it their key, under `heading` and above `notes`.

    `limit` is drawn as a line where it is near, 0 for none. `line` is drawn as a line in front of the bands, `meaning`
    says what it is. `marks_peak` marks where the bands' sum is largest first. Where a page has no room for all panels,
    those of the least `weight` are left out, of equal ones the last.
    """

    title: str
    bands: tuple[Band, ...] = ()
    limit: float = 0.0
    heading: str = ""
    notes: tuple[str, ...] = ()
    line: Points = ()
    meaning: str = ""
    marks_peak: bool = False
    weight: float = 0.0


@dataclass(frozen=True, slots=True)
class AreaChart:
    """Record of panels over one time axis, which ends at `end` (seconds) at least; `unit` spells an amount.

    `least` is the smallest step from one line of the grid to the next: 1 for whole numbers. `error` is how far off
    times are in the mean, as a share of them, 0 where they are no prediction.

    Raises:
        FigureError: the points of a band or line are not in the order of time, or an amount is negative.
    """

    title: str = ""
    caption: str = ""
    areas: tuple[Area, ...] = ()
    end: float = 0.0
    unit: Callable[[float], str] = "{:g}".format
    description: str = ""
    least: float = 0.0
    error: float = 0.0

    def __post_init__(self) -> None:
        for area in self.areas:
            _check(area.line, visible(area.title))
            for band in area.bands:
                _check(band.points, visible(band.title))


def _check(points: Points, title: str) -> None:
    times = [time for time, _ in points]
    if times != sorted(times) or any(time < 0 for time in times):
        raise FigureError(f"the points of {title!r} are not in the order of time")
    if any(amount < 0 for _, amount in points):
        raise FigureError(f"{title!r} has an amount below 0")
