"""The record of a Gantt chart: tracks of bars over time, what is drawn, not how it looks."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal, get_args

from viz.errors import FigureError
from viz.figure import Group
from viz.names import elide, visible

BarKind = Literal["op", "launch", "part", "copy", "collective"]


@dataclass(frozen=True, slots=True)
class Track:
    """Describe one row: a thread, a stream, a link. Tracks with one `owner` stand together under its name."""

    label: str
    owner: str = ""


@dataclass(frozen=True, slots=True)
class Bar:
    """Describe what a track does from `start` to `end`, in seconds.

    `label` is never shortened: where a bar has no room for it, a letter stands for it that a table below explains (not
    for copies and collectives); `more` is written in its place where there is room for that. `group` names the device
    that gives the colour, None for none. `error` is how far off its length may be, as a share. `kind` changes the look:
    a launch is pale, a part of an op has round corners, a copy a dashed outline. A collective is dark and covers `rows`
    tracks, from `track` down: what several devices do together.
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
    more: str = ""
    error: float = 0.0


@dataclass(frozen=True, slots=True)
class Gantt:
    """Record of a chart; tracks are drawn in the order given, and the caption's lines one below the other.

    `end` is where the time axis ends at least, in seconds.

    Raises:
        FigureError: a bar names a track or group that does not exist, ends before it starts, or has an unknown kind.
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
                raise FigureError(f"{what} is on track {bar.track}; the chart has {len(self.tracks)} tracks")
            if not 1 <= bar.rows <= len(self.tracks) - bar.track:
                raise FigureError(f"{what} covers {bar.rows} tracks from {bar.track}; the chart has {len(self.tracks)}")
            if bar.group is not None and bar.group not in groups:
                raise FigureError(f"{what} is of group {bar.group!r}; the chart's groups: {', '.join(sorted(groups))}")
            if bar.end < bar.start or bar.start < 0:
                raise FigureError(f"{what} runs from {bar.start:g} to {bar.end:g} s")
            if bar.kind not in get_args(BarKind):
                raise FigureError(f"{what} is of kind {bar.kind!r}; choose from: {', '.join(get_args(BarKind))}")


def keep_tracks(gantt: Gantt, kept: Collection[int]) -> Gantt:
    """Return a chart with some of its tracks; a bar over several covers those of them that are left.

    >>> chart = Gantt(tracks=(Track("a"), Track("b"), Track("c")), bars=(Bar(0, 0, 1, rows=3), Bar(1, 0, 1)))
    >>> [(bar.track, bar.rows) for bar in keep_tracks(chart, {0, 2}).bars]
    [(0, 2)]
    """
    numbers = {track: number for number, track in enumerate(sorted(kept))}
    bars = []
    for bar in gantt.bars:
        left = [numbers[track] for track in range(bar.track, bar.track + bar.rows) if track in numbers]
        if left:
            bars.append(replace(bar, track=left[0], rows=len(left)))
    return replace(gantt, tracks=tuple(gantt.tracks[track] for track in numbers), bars=tuple(bars))
