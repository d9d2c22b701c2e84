"""Draw a Gantt chart: lanes of bars over time, as DOT whose positions are all fixed.

Graphviz lays nothing out here (its `nop2` only draws), so `viz.layout.render` makes SVG, PNG and PDF of it.
Bars that would be narrower than a hair are drawn together. Critical bars have a mark below, wide ones a black outline
too, so that they show without colour.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import floor, log10
from typing import Literal, get_args

from viz import labels
from viz.canvas import Canvas, axis_width
from viz.errors import FigureError
from viz.figure import Group
from viz.names import elide, visible
from viz.palette import DeviceLook, blend, look, no_device
from viz.style import SCREEN, Style

BarKind = Literal["op", "launch", "part", "copy", "collective"]

_LETTER = 5.0  # points a letter of a bar's label takes at its size
_LANE = 20.0
_BAR = 15.0
_HEAD = 20.0
_TOP = 46.0
_CAPTION = 14.0  # points: a further line of the caption
_RIGHT = 18.0
_HAIR = 0.7  # points: the narrowest bar that is drawn by itself
_OUTLINED = 13.0  # points: narrower bars of the critical path have the mark below alone
_KEY, _KEY_LEFT = 18.0, 18.0  # points: a row of the legend, and where it begins
_STYLES = {"copy": "filled,dashed", "part": "filled,rounded"}


@dataclass(frozen=True, slots=True)
class Track:
    """Describe one row: a thread, a stream, a link. Lanes with one `owner` stand together under its name."""

    label: str
    owner: str = ""


@dataclass(frozen=True, slots=True)
class Bar:
    """Describe what a lane does from `start` to `end`, in seconds.

    `group` names the device that gives the colour, None for none. `kind` changes the look: a launch is pale, a part of
    an op has round corners, a copy a dashed outline. A collective is dark and covers `rows` lanes, from `track` down:
    what several devices do together.
    """

    track: int
    start: float
    end: float
    label: str = ""
    group: str | None = None
    kind: BarKind = "op"
    is_critical: bool = False
    tooltip: str = ""
    count: int = 1
    rows: int = 1


@dataclass(frozen=True, slots=True)
class Gantt:
    """Record of a chart; lanes are drawn in the order given, and the caption's lines one below the other.

    `end` is where the time axis ends at least, in seconds.

    Raises:
        FigureError: a bar names a lane or group that does not exist, ends before it starts, or has an unknown kind.
    """

    title: str = ""
    caption: str = ""
    tracks: tuple[Track, ...] = ()
    bars: tuple[Bar, ...] = ()
    groups: tuple[Group, ...] = ()
    end: float = 0.0
    description: str = ""

    def __post_init__(self) -> None:
        groups = {group.id for group in self.groups}
        for bar in self.bars:
            what = f"the bar {visible(elide(bar.label, 80))!r}"
            if not 0 <= bar.track < len(self.tracks):
                raise FigureError(f"{what} is on lane {bar.track}; the chart has {len(self.tracks)} lanes")
            if not 1 <= bar.rows <= len(self.tracks) - bar.track:
                raise FigureError(f"{what} covers {bar.rows} lanes from {bar.track}; the chart has {len(self.tracks)}")
            if bar.group is not None and bar.group not in groups:
                raise FigureError(f"{what} is of group {bar.group!r}; the chart's groups: {', '.join(sorted(groups))}")
            if bar.end < bar.start or bar.start < 0:
                raise FigureError(f"{what} runs from {bar.start:g} to {bar.end:g} s")
            if bar.kind not in get_args(BarKind):
                raise FigureError(f"{what} is of kind {bar.kind!r}; choose from: {', '.join(get_args(BarKind))}")


def to_dot(gantt: Gantt, style: Style = SCREEN) -> str:
    """Write a chart as DOT."""
    return _Drawing(gantt, style).dot()


def ticks(end: float, wanted: int = 8) -> list[float]:
    """Choose round times from 0 to `end`, about `wanted` of them.

    >>> ticks(0.0021, 4)
    [0.0, 0.0005, 0.001, 0.0015, 0.002]
    """
    if end <= 0:
        return [0.0]
    raw = end / wanted
    size: float = 10.0 ** floor(log10(raw))
    step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= raw * 0.9)
    return [round(i * step, 12) for i in range(floor(end / step * 1.000001) + 1)]


def spell(seconds: float, end: float) -> str:
    """Return a time in the unit that suits an axis which ends at `end`.

    >>> spell(0.0015, 0.002), spell(0.0, 3.0), spell(2e-5, 4e-5)
    ('1.5 ms', '0', '20 µs')
    """
    if seconds == 0:
        return "0"
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if end * factor >= 1:
            return f"{seconds * factor:.10g} {unit}"
    return f"{seconds * 1e9:.10g} ns"


def merged(bars: Sequence[Bar], least: float) -> list[Bar]:
    """Join neighbours on a lane that are shorter than `least` seconds and as near; the counts add up.

    >>> [(b.start, b.end, b.count) for b in merged([Bar(0, 0, 1), Bar(0, 1, 2), Bar(0, 2, 90)], 5)]
    [(0, 2, 2), (2, 90, 1)]
    """
    found: list[Bar] = []
    for bar in sorted(bars, key=lambda one: (one.track, one.rows, one.start, one.end)):
        last = found[-1] if found else None
        is_near = last is not None and (last.track, last.rows) == (bar.track, bar.rows) and bar.start - last.end < least
        if last is None or not is_near or bar.end - bar.start >= least or last.end - last.start >= 4 * least:
            found.append(bar)
            continue
        if last.end - last.start >= least and last.count == 1:
            found.append(bar)
            continue
        found[-1] = replace(
            last,
            end=max(last.end, bar.end),
            label="",
            count=last.count + bar.count,
            is_critical=last.is_critical or bar.is_critical,
            group=last.group if last.group == bar.group else None,
            kind=last.kind if last.kind == bar.kind else "op",
            tooltip=f"{last.count + bar.count} short ops",
        )
    return found


class _Drawing:
    def __init__(self, gantt: Gantt, style: Style) -> None:
        self.gantt = gantt
        self.style = style
        self.end = max([gantt.end, *(bar.end for bar in gantt.bars)], default=0.0) or 1.0
        self.looks = {group.id: look(group, style) for group in gantt.groups}
        longest = max([len(visible(track.label)) for track in gantt.tracks], default=4)
        owners = max([len(visible(track.owner)) for track in gantt.tracks], default=4)
        self.left = min(max(longest * 6.1 + 26, owners * 6.6 + 10, 80.0), 330.0)
        self.width = axis_width(style, self.left + _RIGHT)
        self.rows: list[float] = []  # the top of each lane, downwards from 0
        self.heads: list[tuple[float, str]] = []
        self.captions = gantt.caption.split("\n")
        self.top = _TOP + _CAPTION * (len(self.captions) - 1)
        self.bottom = self._place_rows()
        self.legend = self._legend_rows(self.left + self.width + _RIGHT)
        self.height = self.bottom + 52 + _KEY * max(0, len(self.legend) - 1)
        self.canvas = Canvas("gantt", self.left + self.width + _RIGHT, self.height, style)
        self._box, self._text = self.canvas.box, self.canvas.text

    def dot(self) -> str:
        self._titles()
        self._stripes()
        self._axis()
        bars = merged(self.gantt.bars, self.end / self.width * _HAIR)
        for bar in bars:
            self._bar(bar)
        self._label_beside([bar for bar in bars if bar.kind == "collective"])
        self._legend()
        return self.canvas.dot

    def _place_rows(self) -> float:
        y, owner = self.top, None
        for track in self.gantt.tracks:
            if track.owner != owner and track.owner:
                self.heads.append((y, track.owner))
                y += _HEAD
            owner = track.owner
            self.rows.append(y)
            y += _LANE
        return y + 4

    def _titles(self) -> None:
        room = self.left + self.width
        self._text(8, 13, elide(visible(self.gantt.title), int(room / 8)), room, size=13, bold=True)
        for i, line in enumerate(self.captions):
            y = 30 + _CAPTION * i
            self._text(8, y, elide(visible(line), int(room / 5.2)), room, size=9, colour=self.style.faint_ink)

    def _stripes(self) -> None:
        for i, y in enumerate(self.rows):
            if i % 2 == 0:
                self._box(0, y, self.left + self.width + _RIGHT, _LANE, self.style.stripe)
            label = elide(visible(self.gantt.tracks[i].label), 50)
            self._text(18, y + _LANE / 2, label, self.left, size=9)
        for y, owner in self.heads:
            self._text(8, y + _HEAD / 2 + 2, elide(visible(owner), 48), self.left + self.width, size=9, bold=True)

    def _axis(self) -> None:
        for time in ticks(self.end, max(2, min(8, int(self.width / 75)))):
            x = self._x(time)
            self._box(x - 0.3, self.top, 0.6, self.bottom - self.top, self.style.grid)
            self._text(
                x - 30, self.bottom + 8, spell(time, self.end), 60, size=8, colour=self.style.faint_ink, centre=True
            )

    def _bar(self, bar: Bar) -> None:
        found = self.looks.get(bar.group or "", no_device(self.style))
        x, width = self._x(bar.start), max(_HAIR, (bar.end - bar.start) / self.end * self.width)
        y = self.rows[bar.track] + (_LANE - _BAR) / 2
        height = self.rows[bar.track + bar.rows - 1] - self.rows[bar.track] + _BAR
        room = int((width - 4) / _LETTER)
        label = elide(visible(bar.label), room) if room >= 3 else ""
        extra = {
            "tooltip": bar.tooltip or bar.label,
            "label": labels.plain(label),
            **self._outline(bar, found, width),
        }
        self._box(x, y, width, height, self._fill(bar, found), **extra)
        if bar.is_critical:
            self._box(x, y + height + 0.6, max(width, 1.2), 2.2, self.style.ink)

    def _label_beside(self, bars: Sequence[Bar]) -> None:
        """Write the label of a collective that is too narrow for it to its right, where nothing else stands there."""
        ends = [self._x(bar.start) for bar in bars[1:]] + [self.left + self.width] * bool(bars)
        for bar, after in zip(bars, ends, strict=True):
            right, label = self._x(bar.end), visible(bar.label)
            room = (len(label) + 1) * _LETTER
            if int((right - self._x(bar.start) - 4) / _LETTER) < 3 and 0 < room < after - right:
                y = (self.rows[bar.track] + self.rows[bar.track + bar.rows - 1] + _LANE) / 2
                self._text(right + 4, y, label, room, size=8)

    def _outline(self, bar: Bar, found: DeviceLook, width: float) -> dict[str, str]:
        if bar.kind == "collective":
            return {"color": self.style.ink, "penwidth": "0.6", "style": "filled", "fontcolor": self.style.paper}
        if width < 2:
            return {"fillcolor": found.line}
        style = _STYLES.get(bar.kind, "filled")
        if bar.is_critical and width >= _OUTLINED:
            return {"color": self.style.ink, "penwidth": "1.3", "style": style}
        return {"color": found.line, "penwidth": "0.6", "style": style}

    def _legend_rows(self, room: float) -> list[list[tuple[str, Bar]]]:
        """Break the entries of the legend into rows that fit."""
        rows: list[list[tuple[str, Bar]]] = [[]]
        x = _KEY_LEFT
        for text, bar in self._legend_entries():
            if rows[-1] and x + _key_width(text) > room:
                rows.append([])
                x = _KEY_LEFT
            rows[-1].append((text, bar))
            x += _key_width(text)
        return rows

    def _legend_entries(self) -> list[tuple[str, Bar]]:
        bars = self.gantt.bars
        used, kinds = {bar.group for bar in bars}, {bar.kind for bar in bars}
        entries = [(visible(one.title), Bar(0, 0, 1, group=one.id)) for one in self.gantt.groups if one.id in used]
        words: dict[BarKind, str] = {"launch": "launch on a thread", "part": "part of a split op", "copy": "copy",
                                    "collective": "collective"}  # fmt: skip
        entries += [(text, Bar(0, 0, 1, kind=kind)) for kind, text in words.items() if kind in kinds]
        if any(bar.is_critical for bar in bars):
            entries.append(("on the critical path", Bar(0, 0, 1, is_critical=True)))
        return entries

    def _legend(self) -> None:
        for row, entries in enumerate(self.legend):
            x, y = _KEY_LEFT, self.bottom + 30 + row * _KEY
            for text, bar in entries:
                self._legend_entry(x, y, text, bar)
                x += _key_width(text)

    def _legend_entry(self, x: float, y: float, text: str, bar: Bar) -> None:
        found = self.looks.get(bar.group or "", no_device(self.style))
        self._box(x, y - 5, 16, 10, self._fill(bar, found), **self._outline(bar, found, 16))
        if bar.is_critical:
            self._box(x, y + 5.6, 16, 2.2, self.style.ink)
        self._text(x + 21, y, text, _key_width(text) - 21, size=8.5)

    def _fill(self, bar: Bar, found: DeviceLook) -> str:
        if bar.kind == "collective":
            return blend(self.style.faint_ink, 0.75, self.style.paper)
        return found.backdrop if bar.kind == "launch" else found.fill

    def _x(self, time: float) -> float:
        return self.left + time / self.end * self.width


def _key_width(text: str) -> float:
    return 21 + len(text) * 5.6 + 18
