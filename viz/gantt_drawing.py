"""Draw a Gantt chart: tracks of bars over time, as DOT whose positions are all fixed.

Graphviz lays nothing out here (its `nop2` only draws), so `viz.layout.render` makes SVG, PNG and PDF of it.
Bars that would be narrower than a hair are drawn together. Critical bars have a mark below, wide ones a black outline
too, so that they show without colour. On a page of a fixed height further lines of the caption are left out, the rows
of owners and labels without a letter, then the tracks that do least.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import isinf

from viz import labels
from viz.bar_labels import LETTER, BarLabels, Entry
from viz.canvas import Canvas, axis_width, enlarge_text, heading_height, page_height, wrap_caption
from viz.gantt import Bar, BarKind, Gantt, Track, keep_tracks
from viz.largest_text import draw_largest
from viz.names import elide, visible
from viz.palette import DeviceLook, blend, look, no_device
from viz.style import SCREEN, Style
from viz.time_axis import spell, spell_error, ticks

_TRACK, _BAR = 20.0, 15.0
_TRACK_TIGHT, _BAR_TIGHT = 17.5, 13.5
_HEAD = 20.0
_CAPTION = 14.0  # points: a further line of the caption
_RIGHT = 18.0
_HAIR = 0.7  # points: the narrowest bar that is drawn by itself
_NEAR = 4.0  # points: bars with less between them share a badge
_OUTLINED = 13.0  # points: narrower bars of the critical path have the mark below alone
_KEY, _KEY_LEFT = 18.0, 18.0  # points: a row of the legend, and where it begins
_ROW, _CELL = 14.0, 160.0  # points: a row of the table of labels, and the least width of a column
_ROUNDED = 0.01  # points: by so little a page may be exceeded
_BESIDE = 20.0  # points that a cell takes for its letter, and up to the next cell
_ENTRIES, _LEAST_ROWS = 24, 2  # labels in the table at most, and rows of it that tracks make room for
_STYLES = {"copy": "filled,dashed", "part": "filled,rounded"}


def to_dot(gantt: Gantt, style: Style = SCREEN) -> str:
    """Write a chart as DOT."""
    whole = draw_largest(lambda larger: _draw_whole(gantt, larger, is_larger=larger is not style), style)
    if whole:
        return whole
    brief = _shorten_chart(gantt)
    order = sorted(range(len(brief.tracks)), key=lambda track: (_measure_work(brief, track), -track))
    counts = range(len(order))  # fewer tracks are never higher
    fewest = bisect_left(counts, True, key=lambda left: _draw_without(brief, order[:left], style).fits)
    return _draw_without(brief, order[: min(fewest, max(len(order) - 1, 0))], style).dot()


def _draw_whole(gantt: Gantt, style: Style, *, is_larger: bool) -> str:
    """Return a chart with all of its tracks, with all labels in its table where text `is_larger`, "" without room."""
    drawing = _Drawing(gantt, "", style)
    return drawing.dot() if drawing.fits and not (is_larger and drawing.leaves_out_labels) else ""


def _shorten_chart(gantt: Gantt) -> Gantt:
    """Return a chart with the first line of its caption, and no rows for owners: labels of tracks name them, too.

    Those of an owner of which no track has a label like another owner's stay as they are. An owner of collectives alone
    has one track.
    """
    gantt = _join_collectives(gantt)
    alike = Counter(track.label for track in gantt.tracks) + Counter({track.owner for track in gantt.tracks})
    named = {track.owner for track in gantt.tracks if alike[track.label] > 1}
    tracks = (Track(f"{track.owner} {track.label}" if track.owner in named else track.label) for track in gantt.tracks)
    return replace(gantt, caption=gantt.caption.split("\n")[0], tracks=tuple(tracks))


def _join_collectives(gantt: Gantt) -> Gantt:
    """Return a chart in which the tracks of an owner that has collectives alone are one, with its name."""
    kinds: dict[str, set[str]] = {}
    for bar in gantt.bars:
        for track in gantt.tracks[bar.track : bar.track + bar.rows]:
            kinds.setdefault(track.owner, set()).add(bar.kind)
    joined = {owner for owner, found in kinds.items() if found == {"collective"}}
    first = {track.owner: i for i, track in reversed(list(enumerate(gantt.tracks)))}
    owners = [track.owner for track in gantt.tracks]
    bars = [
        replace(bar, track=first[owners[bar.track]], rows=1) if owners[bar.track] in joined else bar
        for bar in gantt.bars
    ]
    tracks = tuple(Track(one.owner) if one.owner in joined else one for one in gantt.tracks)
    kept = [i for i, owner in enumerate(owners) if owner not in joined or first[owner] == i]
    return keep_tracks(replace(gantt, tracks=tracks, bars=tuple(dict.fromkeys(bars))), kept)


def _measure_work(gantt: Gantt, track: int) -> float:
    """Return for how long a track does anything; what several tracks do together is there for all of them."""
    return sum((bar.end - bar.start) * bar.rows for bar in gantt.bars if bar.track <= track < bar.track + bar.rows)


def _draw_without(gantt: Gantt, left: Sequence[int], style: Style) -> _Drawing:
    return _Drawing(*_leave_out(gantt, left), style, is_tight=True)


def _leave_out(gantt: Gantt, left: Sequence[int]) -> tuple[Gantt, str]:
    """Return a chart without some tracks, and a line that says so."""
    work = [_measure_work(gantt, track) for track in range(len(gantt.tracks))]
    share = sum(work[track] for track in left) / (sum(work) or 1)
    said = f"no room for {len(left)} of {len(work)} tracks, which do {share:.0%} of the work"
    return (keep_tracks(gantt, set(range(len(work))).difference(left)), said) if left else (gantt, "")


def merged(bars: Sequence[Bar], least: float) -> list[Bar]:
    """Join neighbours on a track that are shorter than `least` seconds and as near; the counts add up.

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
            more="",
            count=last.count + bar.count,
            is_critical=last.is_critical or bar.is_critical,
            group=last.group if last.group == bar.group else None,
            kind=last.kind if last.kind == bar.kind else "op",
            tooltip=f"{last.count + bar.count} short ops",
        )
    return found


class _Drawing:
    def __init__(self, gantt: Gantt, left_out: str, style: Style, is_tight: bool = False) -> None:
        self.gantt = gantt
        self.style = style
        self.is_tight = is_tight
        self.track, self.bar = (_TRACK, _BAR) if not is_tight else (_TRACK_TIGHT, _BAR_TIGHT)
        self.small, self.middle, self.normal = (enlarge_text(style, size) for size in (8, 8.5, 9))
        self.end = max([gantt.end, *(bar.end for bar in gantt.bars)], default=0.0) or 1.0
        self.looks = {group.id: look(group, style) for group in gantt.groups}
        longest = max([len(visible(track.label)) for track in gantt.tracks], default=4)
        owners = max([len(visible(track.owner)) for track in gantt.tracks], default=4)
        self.left = min(max(longest * self.normal * 0.68 + 26, owners * self.normal * 0.73 + 10, 80.0), 330.0)
        self.width = axis_width(style, self.left + _RIGHT)
        self.page = self.left + self.width + _RIGHT
        self.rows: list[float] = []  # the top of each track, downwards from 0
        self.heads: list[tuple[float, str]] = []
        caption = "\n".join(filter(None, (gantt.caption if style.has_heading else "", left_out)))
        self.captions = wrap_caption(caption, int((self.page - 16) / (self.normal * 0.6))) if caption else []
        self.top = heading_height(style, len(self.captions), _CAPTION)
        self.bottom = self._place_rows()
        self.legend = self._legend_rows(self.page)
        self.bars = merged(gantt.bars, self.end / self.width * _HAIR)
        self.badges = {group.id: group.badge for group in gantt.groups if group.badge}
        self.labels = BarLabels(self.bars, gantt.bars, self._width, self.small, self.badges)
        self.table_top = self.bottom + 52 + _KEY * max(0, len(self.legend) - 1)
        longest = max((len(visible(one.label) + self._sum_up(one)) for one in self.labels.entries), default=0)
        cell = longest * self.small * LETTER + _BESIDE
        self.columns = max(1, int((self.page - _KEY_LEFT) / max(cell, _CELL)))
        self.cells = self._table_cells(page_height(style) - self.table_top)
        self.labels.keep_codes({code for code, *_ in self.cells})
        rows = -(-len(self.cells) // self.columns)
        self.height = self.table_top + (rows + 1) * _ROW * bool(rows)
        if style.enlarges:
            self._fill_page(page_height(style) - self.height)
        self.canvas = Canvas("gantt", self.page, self.height, style)
        self._box, self._text = self.canvas.box, self.canvas.text

    @property
    def fits(self) -> bool:
        """Return whether the page of the style is high enough."""
        return self.height <= page_height(self.style) + _ROUNDED

    @property
    def leaves_out_labels(self) -> bool:
        """Return whether the table sums labels up for want of room, not because they are too many for any page."""
        return min(len(self.labels.entries), _ENTRIES) > len(self.cells)

    def _fill_page(self, spare: float) -> None:
        """Make tracks higher so that they take the height that the page has left, twice as high at most."""
        more = min(max(spare, 0.0) / max(len(self.gantt.tracks), 1), self.track)
        self.track, self.bar = self.track + more, self.bar + more * _BAR / _TRACK
        self.heads, self.rows = [], []
        lower = self._place_rows() - self.bottom
        self.bottom, self.table_top, self.height = (at + lower for at in (self.bottom, self.table_top, self.height))

    def dot(self) -> str:
        self._titles()
        self._stripes()
        self._axis()
        for bar in self.bars:
            self._bar(bar)
        self._label_runs()
        self._label_beside([bar for bar in self.bars if bar.kind == "collective"])
        self._legend()
        self._table()
        return self.canvas.dot

    def _table_cells(self, room: float) -> list[tuple[str, str, str]]:
        """Return letters and what they stand for, as many as have room, then labels without, then a sum of the rest."""
        entries = [one for one in self.labels.entries if one.code or not self.is_tight]
        rows = _ENTRIES if isinf(room) else max(int((room - 6) / _ROW) - 1, _LEAST_ROWS)
        most = min(rows * self.columns, _ENTRIES)
        shown = entries if len(entries) <= most else entries[: most - 1]
        cells = [(one.code, visible(one.label), self._sum_up(one)) for one in shown]
        rest = entries[len(shown) :]
        if rest:
            cells.append(("", f"and {len(rest)} more", f", {self._spell(rest)}"))
        return cells

    def _sum_up(self, entry: Entry) -> str:
        return f" ×{entry.count:,}, {self._spell([entry])}"

    def _spell(self, entries: Sequence[Entry]) -> str:
        seconds = sum(one.seconds for one in entries)
        error = sum(one.seconds * one.error for one in entries) / seconds if seconds else 0.0
        rounded = float(f"{seconds:.3g}")
        return spell(rounded, rounded) + spell_error(error)

    def _table(self) -> None:
        """Write the table of letters, column by column, under its heading."""
        if self.cells:
            said = "op types without room: how often, how long in all"
            self._text(_KEY_LEFT, self.table_top, said, self.page, size=self.small, colour=self.style.faint_ink)
        rows = -(-len(self.cells) // self.columns) or 1
        wide = (self.page - _KEY_LEFT) / self.columns
        for i, (code, label, sums) in enumerate(self.cells):
            x, y = _KEY_LEFT + i // rows * wide, self.table_top + (1 + i % rows) * _ROW
            if code:
                self._box(x, y - 6, 12, 12, self.style.stripe, color=self.style.faint_ink, penwidth="0.6")
                self._text(x, y, code, 12, size=self.small, centre=True)
            letters = int((wide - _BESIDE) / (self.small * LETTER))
            self._text(x + 18, y, elide(label, letters - len(sums)) + sums, wide - _BESIDE, size=self.small)

    def _width(self, bar: Bar) -> float:
        return max(_HAIR, (bar.end - bar.start) / self.end * self.width)

    def _place_rows(self) -> float:
        y, owner = self.top, None
        for track in self.gantt.tracks:
            if track.owner != owner and track.owner:
                self.heads.append((y, track.owner))
                y += _HEAD
            owner = track.owner
            self.rows.append(y)
            y += self.track
        return y + 4

    def _titles(self) -> None:
        room = self.left + self.width
        self.canvas.heading(self.gantt.title, self.captions, room, size=self.normal, step=_CAPTION)

    def _stripes(self) -> None:
        for i, y in enumerate(self.rows):
            if i % 2 == 0:
                self._box(0, y, self.left + self.width + _RIGHT, self.track, self.style.stripe)
            label = elide(visible(self.gantt.tracks[i].label), 50)
            self._text(18, y + self.track / 2, label, self.left, size=self.normal)
        for y, owner in self.heads:
            self._text(8, y + _HEAD / 2 + 2, elide(visible(owner), 48), self.page - 16, size=self.normal, bold=True)

    def _axis(self) -> None:
        for time in ticks(self.end, max(2, min(8, int(self.width / (self.small * 9.4))))):
            x = self._x(time)
            self._box(x - 0.3, self.top, 0.6, self.bottom - self.top, self.style.grid)
            said, faint = spell(time, self.end), self.style.faint_ink
            self._text(x - 30, self.bottom + 8, said, 60, size=self.small, colour=faint, centre=True)

    def _bar(self, bar: Bar) -> None:
        found = self.looks.get(bar.group or "", no_device(self.style))
        x, width = self._x(bar.start), self._width(bar)
        y = self.rows[bar.track] + (self.track - self.bar) / 2
        height = self.rows[bar.track + bar.rows - 1] - self.rows[bar.track] + self.bar
        extra = {
            "tooltip": bar.tooltip or bar.label,
            "label": labels.plain(self.labels.text(bar)),
            "fontsize": f"{self.small:g}",
            **self._outline(bar, found, width),
        }
        self._box(x, y, width, height, self._fill(bar, found), **extra)
        if bar.is_critical:
            self._box(x, y + height + 0.6, max(width, 1.2), 2.2, self.style.ink)

    def _label_runs(self) -> None:
        """Write the badge of a group once over bars in a row that have no room for it, on tracks of several groups."""
        for run in self._list_runs():
            badge = self.labels.badge(run[0])
            left, right = self._x(run[0].start), max(self._x(bar.start) + self._width(bar) for bar in run)
            width = self.labels.room(len(badge))
            if badge and right - left >= width and not any(map(self.labels.text, run)):
                y = self.rows[run[0].track] + (self.track - self.bar) / 2 + 1
                fill, line = self.style.paper, self.looks[run[0].group or ""].line
                extra = {"label": badge, "fontsize": f"{self.small:g}", "color": line, "penwidth": "0.6"}
                self._box((left + right - width) / 2, y, width, self.bar - 2, fill, **extra)

    def _list_runs(self) -> list[list[Bar]]:
        """Return the bars in runs: those of one group on one track, each soon after the one before."""
        runs: list[list[Bar]] = []
        for bar in sorted(self.bars, key=lambda one: (one.track, one.start)):
            last = runs[-1][-1] if runs else None
            alike = last is not None and (last.track, last.group) == (bar.track, bar.group)
            if last is not None and alike and self._x(bar.start) - self._x(last.end) < _NEAR:
                runs[-1].append(bar)
            else:
                runs.append([bar])
        return runs

    def _label_beside(self, bars: Sequence[Bar]) -> None:
        """Write the label of a collective that is too narrow for it to its right, where nothing else stands there."""
        ends = [self._x(bar.start) for bar in bars[1:]] + [self.left + self.width] * bool(bars)
        for bar, after in zip(bars, ends, strict=True):
            right, label = self._x(bar.end), visible(bar.label)
            room = (len(label) + 1) * self.small * LETTER
            if not self.labels.text(bar) and 0 < room < after - right:
                y = (self.rows[bar.track] + self.rows[bar.track + bar.rows - 1] + self.track) / 2
                self._text(right + 4, y, label, room, size=self.small)

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
            if rows[-1] and x + self._key_width(text) > room:
                rows.append([])
                x = _KEY_LEFT
            rows[-1].append((text, bar))
            x += self._key_width(text)
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
                x += self._key_width(text)

    def _legend_entry(self, x: float, y: float, text: str, bar: Bar) -> None:
        found = self.looks.get(bar.group or "", no_device(self.style))
        badge = {"label": self.badges.get(bar.group or "", ""), "fontsize": f"{self.small:g}"}
        self._box(x, y - 5, 16, 10, self._fill(bar, found), **badge, **self._outline(bar, found, 16))
        if bar.is_critical:
            self._box(x, y + 5.6, 16, 2.2, self.style.ink)
        self._text(x + 21, y, text, self._key_width(text) - 21, size=self.middle)

    def _fill(self, bar: Bar, found: DeviceLook) -> str:
        if bar.kind == "collective":
            return blend(self.style.faint_ink, 0.75, self.style.paper)
        return found.backdrop if bar.kind == "launch" else found.fill

    def _x(self, time: float) -> float:
        return self.left + time / self.end * self.width

    def _key_width(self, text: str) -> float:
        return 21 + len(text) * self.middle * 0.66 + 18
