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
from viz.palette import blend, look
from viz.style import SCREEN, Style

_TOP, _PANEL, _HEAD, _GAP = 46.0, 96.0, 16.0, 14.0
_LEFT, _RIGHT, _NOTES = 62.0, 18.0, 250.0
_COLUMN = 1.0  # points: the narrowest step that is drawn by itself
_NOTE = 11.0
_LINE = 1.2  # points: the outline
_FRONT = 1.4  # points: the line in front
_KEY = 22.0
_OVERLAP = 0.4  # points: neighbours overlap, or the paper would shine through between them


Points = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Area:
    """Describe one panel: `points` list (time in seconds, amount from then on), earliest first.

    `group` gives title and colour. `limit` is drawn as a line where it is near, 0 for none. `notes` are lines of text
    beside the panel, such as what the largest amount is made of. `back` is drawn pale behind `points`, `line` as a line
    in front of them.
    """

    group: Group
    points: Points
    limit: float = 0.0
    notes: tuple[str, ...] = ()
    back: Points = ()
    line: Points = ()


@dataclass(frozen=True, slots=True)
class AreaChart:
    """Record of panels over one time axis, which ends at `end` (seconds) at least; `unit` spells an amount.

    `key` says below the panels what their points, backs and lines are; without it the largest amount is marked.
    `least` is the smallest step from one line of the grid to the next: 1 for whole numbers.

    Raises:
        FigureError: the points of a panel are not in the order of time, or an amount is negative.
    """

    title: str = ""
    caption: str = ""
    areas: tuple[Area, ...] = ()
    end: float = 0.0
    unit: Callable[[float], str] = "{:g}".format
    description: str = ""
    key: tuple[str, ...] = ()
    least: float = 0.0

    def __post_init__(self) -> None:
        for area in self.areas:
            for points in (area.points, area.back, area.line):
                _check(points, visible(area.group.title))


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


def levels(highest: float, wanted: int = 3, least: float = 0.0) -> list[float]:
    """Choose round amounts from 0 up, in powers of two so that bytes come out even, about `wanted` of them.

    >>> levels(1000), levels(0), levels(1.5, least=1.0)
    ([0.0, 256.0, 512.0, 768.0], [0.0], [0.0, 1.0])
    """
    if highest <= 0:
        return [0.0]
    step = max(2.0 ** floor(log2(highest / wanted)), least)
    step = step if highest / step <= 2 * wanted - 1 else step * 2
    return [i * step for i in range(floor(highest / step) + 1)]


def _check(points: Points, title: str) -> None:
    times = [time for time, _ in points]
    if times != sorted(times) or any(time < 0 for time in times):
        raise FigureError(f"the points of {title!r} are not in the order of time")
    if any(amount < 0 for _, amount in points):
        raise FigureError(f"{title!r} has an amount below 0")


class _Drawing:
    def __init__(self, chart: AreaChart, style: Style) -> None:
        self.chart = chart
        self.style = style
        ends = [
            points[-1][0] for area in chart.areas for points in (area.points, area.back, area.line) if points
        ]  # fmt: skip
        self.end = max([chart.end, *ends], default=0.0) or 1.0
        self.notes = _NOTES if any(area.notes for area in chart.areas) else 0.0
        self.width = axis_width(style, _LEFT + _RIGHT + self.notes, 960.0 - self.notes)
        tallest = max((len(area.notes) for area in chart.areas), default=0)
        self.panel = max(_PANEL * (1.5 if chart.key else 1), tallest * _NOTE + 6)
        height = _TOP + len(chart.areas) * (_HEAD + self.panel + _GAP) + 22 + (_KEY if chart.key else 0)
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
        self._key(y + _KEY)
        return self.canvas.dot

    def _panel(self, area: Area, y: float) -> None:
        style, canvas = self.style, self.canvas
        title = elide(visible(area.group.title), 60)
        canvas.text(8, y + _HEAD / 2 - 2, title, self.width, size=9, bold=True)
        top = y + _HEAD
        highest = max((amount for points in (area.points, area.back, area.line) for _, amount in points), default=0.0)
        is_near = 0 < area.limit <= 2 * highest
        scale = (area.limit if is_near and area.limit > highest else highest) * 1.06 or 1.0
        canvas.box(_LEFT, top, self.width, self.panel, style.stripe)
        for amount in levels(scale, least=self.chart.least):
            line = top + self.panel * (1 - amount / scale)
            canvas.box(_LEFT, line - 0.3, self.width, 0.6, style.grid)
            said = self.chart.unit(amount)
            canvas.text(0, line, said, _LEFT - 6, size=8, colour=style.faint_ink, centre=True)
        front, back = self._looks(area.group)
        self._steps(area, area.back, top, scale, *back)
        self._steps(area, area.points, top, scale, *front)
        self._steps(area, area.line, top, scale, "", style.ink)
        if not self.chart.key:
            self._peak(area, top, scale)
        if is_near:
            line = top + self.panel * (1 - area.limit / scale)
            canvas.box(_LEFT, line - 0.6, self.width, 1.2, style.warning_ink)
            said = f"limit {self.chart.unit(area.limit)}"
            canvas.text(_LEFT + 4, line + 6, said, 120, size=8, colour=style.warning_ink)
        for i, note in enumerate(area.notes):
            text = elide(visible(note), int(_NOTES / 5.0))
            colour = style.ink if i == 0 else style.faint_ink
            canvas.text(_LEFT + self.width + 10, top + 7 + i * _NOTE, text, _NOTES - 10, size=8, colour=colour)

    def _steps(self, area: Area, points: Points, top: float, scale: float, fill: str, line: str) -> None:
        """Draw steps, filled where there is a colour to fill them with."""
        count = max(1, int(self.width / _COLUMN))
        thick = _LINE if fill else _FRONT
        before: float | None = None
        for first, last, amount in columns(points, self.end, count) if points else []:
            height = self.panel * amount / scale
            x, width = _LEFT + first / count * self.width, (last - first) / count * self.width
            said = f"{area.group.title}: {self.chart.unit(amount)} at {spell(first / count * self.end, self.end)}"
            y = self.panel - height
            if fill:
                self.canvas.box(x, top + y, width + _OVERLAP, height, fill, tooltip=visible(said))
            self.canvas.box(x, top + y, width + thick, thick, line)
            if before is not None:
                self.canvas.box(x, top + min(y, before), thick, abs(y - before) + thick, line)
            before = y

    def _looks(self, group: Group) -> tuple[tuple[str, str], tuple[str, str]]:
        """Return the colours of filling and outline: of the points, darker where a key tells them from the back."""
        found = look(group, self.style)
        if not self.chart.key:
            return (found.fill, found.line), (found.backdrop, self.style.frame)
        return (blend(found.line, 0.5, self.style.paper), found.line), (found.fill, found.line)

    def _key(self, y: float) -> None:
        """Write what is filled, pale and a line, in the look of the first panel."""
        if not self.chart.key or not self.chart.areas:
            return
        front, back = self._looks(self.chart.areas[0].group)
        x = _LEFT
        for text, (fill, line) in zip(self.chart.key, (front, back, ("", self.style.ink)), strict=False):
            if fill:
                self.canvas.box(x, y - 5, 16, 10, fill)
            self.canvas.box(x, y - 5 if fill else y - _FRONT / 2, 16, _LINE if fill else _FRONT, line)
            self.canvas.text(x + 21, y, visible(text), len(text) * 5.6, size=8.5)
            x += 21 + len(text) * 5.6 + 18

    def _peak(self, area: Area, top: float, scale: float) -> None:
        """Mark the first of the largest amounts."""
        time, amount = max(area.points, key=lambda point: (point[1], -point[0]), default=(0.0, 0.0))
        if amount <= 0:
            return
        x, y = _LEFT + time / self.end * self.width, top + self.panel * (1 - amount / scale)
        self.canvas.box(x - 2.5, y - 2.5, 5, 5, self.style.ink, tooltip=visible(f"peak: {self.chart.unit(amount)}"))
