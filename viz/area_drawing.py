"""Draw amounts over time as stacked bands, a panel each, as DOT whose positions are all fixed (see `viz.canvas`)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from math import ceil, floor, log2

from viz.area import Area, AreaChart, Band
from viz.canvas import Canvas, axis_width, enlarge_text, heading_height, page_height, wrap_caption
from viz.figure import Group
from viz.largest_text import draw_largest
from viz.names import elide, visible
from viz.palette import band_fill, blend, look
from viz.shortening import fit_all
from viz.stack import Piece, cut_columns, find_pieces, find_room, split_pieces
from viz.style import SCREEN, Style
from viz.time_axis import spell, spell_error, ticks

_HEAD, _GAP, _BELOW = 16.0, 14.0, 22.0
# Points: the height of a panel by itself, and on a page of a fixed height.
_PANEL, _LOWEST, _HIGHEST = 120.0, 64.0, 320.0
_LOW = 90.0  # points: a panel that is lower is not to have larger text
_LEFT, _RIGHT, _KEY = 62.0, 18.0, 250.0
_KEY_OF_PAGE = 0.4  # of a page: what the key takes of it at most
_SWATCH = 14.0
_LETTER = 0.6  # of the size of text: a letter of it takes so much
_LEADING = 1.4
_COLUMN = 1.0  # points: the narrowest step that is drawn by itself
_GRAIN = 0.25  # points: heights are rounded to
_RIM, _FRONT, _HATCH, _BETWEEN = 0.6, 1.1, 0.5, 5.0  # points: lines around a band, in front, upon it, and between those
_OVERLAP = 0.4  # points: neighbours overlap, or the paper would shine through between them


def to_dot(chart: AreaChart, style: Style = SCREEN) -> str:
    """Write a chart as DOT; on a page of a fixed height only the panels that fit are drawn, and it says so."""
    return draw_largest(lambda larger: _draw_panels(chart, larger, is_larger=larger is not style), style)


def _draw_panels(chart: AreaChart, style: Style, *, is_larger: bool) -> str:
    """Return a chart, "" where text `is_larger` and leaves panels no room, or makes them too low."""
    drawing = _Drawing(chart, style)
    is_small = len(drawing.areas) < len(chart.areas) or drawing.panel < _LOW
    return "" if is_larger and is_small else drawing.dot()


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


class _Drawing:
    def __init__(self, chart: AreaChart, style: Style) -> None:
        self.chart = chart
        self.style = style
        self.small, self.normal = (enlarge_text(style, size) for size in (8, 9))
        lines = [area.line for area in chart.areas] + [band.points for area in chart.areas for band in area.bands]
        self.end = max([chart.end, *(points[-1][0] for points in lines if points)], default=0.0) or 1.0
        whole = axis_width(style, _LEFT + _RIGHT, 960.0)
        self.key = min(_KEY, whole * _KEY_OF_PAGE) if any(map(_count_rows, chart.areas)) else 0.0
        self.width = whole - self.key
        self.count = max(1, int(self.width / _COLUMN))
        self.letters = int((_LEFT + self.width + self.key) / (self.normal * _LETTER))
        self.captions = wrap_caption(chart.caption, self.letters) if style.has_heading else []
        self.areas, self.panel = self._choose_panels(list(chart.areas))
        while len(self.areas) < len(chart.areas):
            before, self.captions = self.captions, wrap_caption(self._say_left(), self.letters)
            if self.captions == before:
                break
            self.areas, self.panel = self._choose_panels(self.areas)  # beside the line that says so
        height = self.top + len(self.areas) * (_HEAD + self.panel + _GAP) + _BELOW
        self.canvas = Canvas("area", _LEFT + self.width + self.key + _RIGHT, height, style)

    def _choose_panels(self, areas: list[Area]) -> tuple[list[Area], float]:
        """Return those of the panels that the page has room for, and how high each is."""
        page = page_height(self.style)
        while True:
            tallest = max(map(_count_rows, areas), default=0) * self.small * _LEADING + 6
            room = (page - self.top - _BELOW) / max(len(areas), 1) - _HEAD - _GAP
            least = max(tallest, _LOWEST)
            if room >= least or len(areas) <= 1:
                return areas, max(min(room, _HIGHEST if self.style.enlarges else max(_PANEL, tallest)), least)
            lightest = min(range(len(areas)), key=lambda i: (areas[i].weight, -i))
            areas = [*areas[:lightest], *areas[lightest + 1 :]]

    def dot(self) -> str:
        room = self.canvas.width - 16
        step, faint = self.normal * _LEADING, self.style.faint_ink
        self.canvas.heading(self.chart.title, self.captions, room, size=self.normal, step=step)
        y = self.top
        for area in self.areas:
            _Panel(self, area, y).draw()
            y += _HEAD + self.panel + _GAP
        every = max(1, ceil(len(ticks(self.end)) * self.small * 6.5 / self.width))
        for time in ticks(self.end)[::every]:
            x = _LEFT + time / self.end * self.width
            self.canvas.text(x - 26, y, spell(time, self.end), 52, size=self.small, colour=faint, centre=True)
        return self.canvas.dot

    @property
    def top(self) -> float:
        """Return where the first panel begins."""
        return heading_height(self.style, len(self.captions), self.normal * _LEADING)

    def _say_left(self) -> str:
        """Return the caption, where there is one, with the panels that the page has no room for."""
        left = [area.title.partition(": ")[0] for area in self.chart.areas if area not in self.areas]
        said = f"no room for {', '.join(left)}"
        return f"{self.chart.caption}; {said}" if self.style.has_heading else said


class _Panel:
    def __init__(self, drawing: _Drawing, area: Area, y: float) -> None:
        self.drawing, self.area, self.style, self.canvas = drawing, area, drawing.style, drawing.canvas
        self.width, self.height, self.y, self.top = drawing.width, drawing.panel, y, y + _HEAD
        self.columns = cut_columns([band.points for band in area.bands], drawing.end, drawing.count)
        self.line = cut_columns([area.line], drawing.end, drawing.count) if area.line else []
        self.highest = max((sum(amounts) for amounts in (*self.columns, *self.line)), default=0.0)
        self.is_near = 0 < area.limit <= 2 * self.highest
        self.scale = (max(area.limit, self.highest) if self.is_near else self.highest) * 1.06 or 1.0

    def draw(self) -> None:
        title = elide(visible(self.area.title), int(self.canvas.width / (self.drawing.normal * 0.68)))
        room = self.canvas.width - 16
        self.canvas.text(8, self.y + _HEAD / 2 - 2, title, room, size=self.drawing.normal, bold=True)
        self.canvas.box(_LEFT, self.top, self.width, self.height, self.style.stripe)
        self._draw_grid()
        pieces = [
            find_pieces(self.columns, i, _GRAIN / self.height * self.scale) for i in range(len(self.area.bands))
        ]  # fmt: skip
        for number, found in enumerate(pieces):
            self._draw_band(number, found)
        peak = self._mark_peak() if self.area.marks_peak else -1
        for band, found in zip(self.area.bands, pieces, strict=True):
            self._label_band(band, found, peak)
        self._draw_line()
        if self.is_near:
            self._draw_limit()
        self._draw_key()

    def _draw_grid(self) -> None:
        for amount in levels(self.scale, least=self.drawing.chart.least):
            y = self._y(amount)
            self.canvas.box(_LEFT, y - 0.3, self.width, 0.6, self.style.grid)
            said = self.drawing.chart.unit(amount)
            size = self.drawing.small
            self.canvas.text(0, y, said, _LEFT - 6, size=size, colour=self.style.faint_ink, centre=True)

    def _draw_band(self, number: int, pieces: Sequence[Piece]) -> None:
        band = self.area.bands[number]
        group = _group_of(band)
        fill, rim = band_fill(group, self.style), look(group, self.style).line
        hatch = blend(rim, 0.55, fill)
        before: Piece | None = None
        for piece in pieces:
            x, width = self._x(piece.first), self._x(piece.last) - self._x(piece.first)
            y, bottom = self._y(piece.high), self._y(piece.low)
            amount = self.columns[piece.first][number]
            time = spell(float(f"{piece.first / len(self.columns) * self.drawing.end:.3g}"), self.drawing.end)
            said = f"{band.title}: {self.drawing.chart.unit(amount)} at {time}{spell_error(self.drawing.chart.error)}"
            self.canvas.box(x, y, width + _OVERLAP, bottom - y, fill, tooltip=visible(said))
            self._draw_pattern(band, piece, hatch)
            self.canvas.box(x, y, width + _RIM, _RIM, rim)
            if before is None or before.last != piece.first:
                self.canvas.box(x, y, _RIM, bottom - y, rim)
            elif before.high != piece.high:
                above = min(y, self._y(before.high))
                self.canvas.box(x, above, _RIM, abs(y - self._y(before.high)), rim)
            before = piece

    def _draw_pattern(self, band: Band, piece: Piece, colour: str) -> None:
        """Draw upright lines at fixed columns, or level ones at fixed heights, so that they go on in the next piece."""
        x, right = self._x(piece.first), self._x(piece.last)
        y, bottom = self._y(piece.high), self._y(piece.low)
        if band.pattern == "upright":
            for i in range(ceil(x / _BETWEEN), ceil(right / _BETWEEN)):
                self.canvas.box(i * _BETWEEN, y, _HATCH, bottom - y, colour)
        elif band.pattern == "level":
            for i in range(ceil(y / _BETWEEN), ceil(bottom / _BETWEEN)):
                self.canvas.box(x, i * _BETWEEN, right - x, _HATCH, colour)

    def _label_band(self, band: Band, pieces: Sequence[Piece], peak: int) -> None:
        """Write a band's title into it where it has room, not over the column of the peak."""
        size, said = self.drawing.small, visible(band.title)
        wide = (len(said) + 1) * size * _LETTER
        place = find_room(
            split_pieces(pieces, peak),
            ceil(wide / self.width * len(self.columns)),
            size * 1.3 / self.height * self.scale,
        )
        if place is None:
            return
        x, y = _LEFT + place[0] / len(self.columns) * self.width, self._y(place[1])
        if band.pattern != "plain":
            fill = band_fill(_group_of(band), self.style)
            self.canvas.box(x - wide / 2, y - size * 0.65, wide, size * 1.3, fill)
        self.canvas.text(x - wide / 2, y, said, wide, size=size, centre=True)

    def _draw_line(self) -> None:
        before: float | None = None
        for (amount,), run in groupby(range(len(self.line)), self.line.__getitem__):
            columns = list(run)
            x, right, y = self._x(columns[0]), self._x(columns[-1] + 1), self._y(amount)
            self.canvas.box(x, y - _FRONT / 2, right - x + _FRONT, _FRONT, self.style.ink)
            if before is not None:
                self.canvas.box(x, min(y, before) - _FRONT / 2, _FRONT, abs(y - before) + _FRONT, self.style.ink)
            before = y

    def _mark_peak(self) -> int:
        """Mark the first column with the largest sum, and return it: a line, and a square on its top; -1 for none."""
        sums = [sum(amounts) for amounts in self.columns]
        if not any(sums):
            return -1
        x, y = self._x(sums.index(max(sums))), self._y(max(sums))
        said = visible(f"peak: {self.drawing.chart.unit(max(sums))}")
        self.canvas.box(x - 0.4, y, 0.8, self.top + self.height - y, self.style.ink, tooltip=said)
        self.canvas.box(x - 2.5, y - 2.5, 5, 5, self.style.ink, tooltip=said)
        return sums.index(max(sums))

    def _draw_limit(self) -> None:
        y, size = self._y(self.area.limit), self.drawing.small
        self.canvas.box(_LEFT, y - 0.6, self.width, 1.2, self.style.warning_ink)
        said = f"limit {self.drawing.chart.unit(self.area.limit)}"
        self.canvas.text(_LEFT + 4, y + size * 0.75, said, 120, size=size, colour=self.style.warning_ink)

    def _draw_key(self) -> None:
        """Write the heading, what each band is, from the top down as they are stacked, the line, then the notes."""
        area, size = self.area, self.drawing.small
        x, y, step = _LEFT + self.width + 10, self.top + size, size * _LEADING
        room = self.drawing.key - 10
        if area.heading:
            self._write(x, y, area.heading, room, self.style.ink)
            y += step
        bands = [band for band in reversed(area.bands) if band.title]
        notes = max((len(band.note) for band in bands), default=0) * size * _LETTER
        left = x + _SWATCH + 6 + (notes + 4 if notes else 0)
        titles = fit_all([visible(band.title) for band in bands], int((x + room - left) / (size * _LETTER)))
        for band, title in zip(bands, titles, strict=True):
            self._draw_swatch(band, x, y)
            self._write(x + _SWATCH + 6, y, band.note, x + room - left, self.style.ink)
            self._write(left, y, title, x + room - left, self.style.ink)
            y += step
        if area.meaning:
            self.canvas.box(x, y - _FRONT / 2, _SWATCH, _FRONT, self.style.ink)
            self._write(x + _SWATCH + 6, y, area.meaning, room - _SWATCH - 6, self.style.ink)
            y += step
        for note in area.notes:
            self._write(x, y, note, room, self.style.faint_ink)
            y += step

    def _draw_swatch(self, band: Band, x: float, y: float) -> None:
        high, group = self.drawing.small, _group_of(band)
        rim = look(group, self.style).line
        self.canvas.box(x, y - high / 2, _SWATCH, high, band_fill(group, self.style), color=rim, penwidth="0.6")
        if band.pattern == "upright":
            for i in (1, 2):
                self.canvas.box(x + i * _SWATCH / 3, y - high / 2, _HATCH, high, rim)
        elif band.pattern == "level":
            for i in (1, 2):
                self.canvas.box(x, y - high / 2 + i * high / 3, _SWATCH, _HATCH, rim)

    def _write(self, x: float, y: float, text: str, room: float, colour: str) -> None:
        size = self.drawing.small
        self.canvas.text(x, y, elide(visible(text), int(room / (size * _LETTER))), room, size=size, colour=colour)

    def _x(self, column: int) -> float:
        return _LEFT + column / len(self.columns) * self.width

    def _y(self, amount: float) -> float:
        return self.top + self.height * (1 - amount / self.scale)


def _count_rows(area: Area) -> int:
    named = sum(bool(band.title) for band in area.bands)
    return bool(area.heading) + named + bool(area.meaning) + len(area.notes)


def _group_of(band: Band) -> Group:
    return Group("", "", kind=band.kind, index=band.index)
