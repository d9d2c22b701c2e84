"""Draw amounts over time as filled steps, a panel each, as DOT whose positions are all fixed (see `viz.canvas`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log2

from viz.canvas import Canvas, axis_width
from viz.errors import FigureError
from viz.figure import Group
from viz.gantt import spell, ticks
from viz.names import elide, visible
from viz.palette import look
from viz.style import SCREEN, Style

_TOP, _PANEL, _HEAD, _GAP = 46.0, 96.0, 16.0, 14.0
_LEFT, _RIGHT, _NOTES = 62.0, 18.0, 250.0
_COLUMN = 1.0  # points: the narrowest step that is drawn by itself
_NOTE = 11.0
_LINE = 1.2  # points: the outline
_OVERLAP = 0.4  # points: neighbours overlap, or the paper would shine through between them


@dataclass(frozen=True, slots=True)
class Area:
    """Describe one panel: `points` list (time in seconds, amount from then on), earliest first.

    `group` gives title and colour. `limit` is drawn as a line where it is near, 0 for none. `notes` are lines of text
    beside the panel, such as what the largest amount is made of.
    """

    group: Group
    points: tuple[tuple[float, float], ...]
    limit: float = 0.0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AreaChart:
    """Hold panels over one time axis, which ends at `end` (seconds) at least; `unit` spells an amount.

    Raises:
        FigureError: the points of a panel are not in the order of time, or an amount is negative.
    """

    title: str = ""
    caption: str = ""
    areas: tuple[Area, ...] = ()
    end: float = 0.0
    unit: Callable[[float], str] = "{:g}".format
    description: str = ""

    def __post_init__(self) -> None:
        for area in self.areas:
            times = [time for time, _ in area.points]
            if times != sorted(times) or any(time < 0 for time in times):
                raise FigureError(f"the points of {visible(area.group.title)!r} are not in the order of time")
            if any(amount < 0 for _, amount in area.points):
                raise FigureError(f"{visible(area.group.title)!r} has an amount below 0")


def to_dot(chart: AreaChart, style: Style = SCREEN) -> str:
    """Write a chart as DOT."""
    return _Drawing(chart, style).dot()


def columns(points: Sequence[tuple[float, float]], end: float, count: int) -> list[tuple[int, int, float]]:
    """Cut steps into at most `count` columns of equal width: (first column, one past the last, largest amount there).

    A peak too short for a column of its own still fills one.

    >>> columns([(0, 1), (1, 5), (1.1, 2)], 4, 4)
    [(0, 1, 1), (1, 2, 5), (2, 4, 2)]
    """
    highest = [0.0] * count
    ends = [time for time, _ in points[1:]] + [end]
    for (start, amount), stop in zip(points, ends, strict=True):
        first = min(floor(start / end * count), count - 1)
        last = max(min(ceil(stop / end * count), count), first + 1)
        for i in range(first, last):
            highest[i] = max(highest[i], amount)
    found: list[tuple[int, int, float]] = []
    for i, amount in enumerate(highest):
        if found and found[-1][2] == amount:
            found[-1] = (found[-1][0], i + 1, amount)
        else:
            found.append((i, i + 1, amount))
    return found


def levels(highest: float, wanted: int = 3) -> list[float]:
    """Choose round amounts from 0 up, in powers of two so that bytes come out even, about `wanted` of them.

    >>> levels(1000), levels(0)
    ([0.0, 256.0, 512.0, 768.0], [0.0])
    """
    if highest <= 0:
        return [0.0]
    step = 2.0 ** floor(log2(highest / wanted))
    step = step if highest / step <= 2 * wanted - 1 else step * 2
    return [i * step for i in range(floor(highest / step) + 1)]


class _Drawing:
    def __init__(self, chart: AreaChart, style: Style) -> None:
        self.chart = chart
        self.style = style
        ends = [area.points[-1][0] for area in chart.areas if area.points]
        self.end = max([chart.end, *ends], default=0.0) or 1.0
        self.notes = _NOTES if any(area.notes for area in chart.areas) else 0.0
        self.width = axis_width(style, _LEFT + _RIGHT + self.notes, 960.0 - self.notes)
        tallest = max((len(area.notes) for area in chart.areas), default=0)
        self.panel = max(_PANEL, tallest * _NOTE + 6)
        height = _TOP + len(chart.areas) * (_HEAD + self.panel + _GAP) + 22
        self.canvas = Canvas("area", _LEFT + self.width + self.notes + _RIGHT, height, style)

    def dot(self) -> str:
        room = self.canvas.width - 16
        self.canvas.text(8, 13, elide(visible(self.chart.title), int(room / 8)), room, size=13, bold=True)
        caption = elide(visible(self.chart.caption), int(room / 5.2))
        self.canvas.text(8, 30, caption, room, size=9, colour=self.style.faint_ink)
        y = _TOP
        for area in self.chart.areas:
            self._panel(area, y)
            y += _HEAD + self.panel + _GAP
        every = max(1, ceil(len(ticks(self.end)) * 52 / self.width))
        for time in ticks(self.end)[::every]:
            x = _LEFT + time / self.end * self.width
            self.canvas.text(x - 26, y, spell(time, self.end), 52, size=8, colour=self.style.faint_ink, centre=True)
        return self.canvas.dot

    def _panel(self, area: Area, y: float) -> None:
        style, canvas = self.style, self.canvas
        title = elide(visible(area.group.title), 60)
        canvas.text(8, y + _HEAD / 2 - 2, title, self.width, size=9, bold=True)
        top = y + _HEAD
        highest = max((amount for _, amount in area.points), default=0.0)
        is_near = 0 < area.limit <= 2 * highest
        scale = (area.limit if is_near and area.limit > highest else highest) * 1.06 or 1.0
        canvas.box(_LEFT, top, self.width, self.panel, style.stripe)
        for amount in levels(scale):
            line = top + self.panel * (1 - amount / scale)
            canvas.box(_LEFT, line - 0.3, self.width, 0.6, style.grid)
            said = self.chart.unit(amount)
            canvas.text(0, line, said, _LEFT - 6, size=8, colour=style.faint_ink, centre=True)
        self._steps(area, top, scale)
        if is_near:
            line = top + self.panel * (1 - area.limit / scale)
            canvas.box(_LEFT, line - 0.6, self.width, 1.2, style.warning_ink)
            said = f"limit {self.chart.unit(area.limit)}"
            canvas.text(_LEFT + 4, line + 6, said, 120, size=8, colour=style.warning_ink)
        for i, note in enumerate(area.notes):
            text = elide(visible(note), int(_NOTES / 5.0))
            colour = style.ink if i == 0 else style.faint_ink
            canvas.text(_LEFT + self.width + 10, top + 7 + i * _NOTE, text, _NOTES - 10, size=8, colour=colour)

    def _steps(self, area: Area, top: float, scale: float) -> None:
        found = look(area.group, self.style)
        count = max(1, int(self.width / _COLUMN))
        before: float | None = None
        for first, last, amount in columns(area.points, self.end, count) if area.points else []:
            height = self.panel * amount / scale
            x, width = _LEFT + first / count * self.width, (last - first) / count * self.width
            said = f"{area.group.title}: {self.chart.unit(amount)} at {spell(first / count * self.end, self.end)}"
            y = self.panel - height
            self.canvas.box(x, top + y, width + _OVERLAP, height, found.fill, tooltip=visible(said))
            self.canvas.box(x, top + y, width + _LINE, _LINE, found.line)
            if before is not None:
                self.canvas.box(x, top + min(y, before), _LINE, abs(y - before) + _LINE, found.line)
            before = y
        self._peak(area, top, scale)

    def _peak(self, area: Area, top: float, scale: float) -> None:
        """Mark the first of the largest amounts."""
        time, amount = max(area.points, key=lambda point: (point[1], -point[0]), default=(0.0, 0.0))
        if amount <= 0:
            return
        x, y = _LEFT + time / self.end * self.width, top + self.panel * (1 - amount / scale)
        self.canvas.box(x - 2.5, y - 2.5, 5, 5, self.style.ink, tooltip=visible(f"peak: {self.chart.unit(amount)}"))
