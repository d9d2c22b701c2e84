"""Choose what is written into the bars of a chart: a label, or where it has no room a letter, and a table of these."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from viz.gantt import Bar
from viz.names import visible

# Letters of about one width, which cannot be taken for another one or a digit.
_LETTERS = "abcdefghknpqrstuvxyz"
LETTER = 0.62  # of the size of text: a letter of a label takes so much
_CODE = 0.66
_NO_BADGES: Mapping[str, str] = MappingProxyType({})
_SPELLED = ("op", "launch", "part")


@dataclass(frozen=True, slots=True)
class Entry:
    """Record of a label in the table: its letter ("" for one without), how many bars have it, and their seconds.

    `error` is how far off the seconds may be, as a share. Launches are not counted where the label has other bars.
    """

    code: str
    label: str
    count: int
    seconds: float
    error: float


class BarLabels:
    """Choose the texts of bars, given how wide each is drawn, for text of one size (points).

    `whole` are the bars before some were drawn as one, without their labels: the table sums these up.

    On a track with bars of several groups the badge of a bar's group comes first, or stands alone where there is no
    room for more. A copy without room for its label has the badge of its group on every track.
    """

    def __init__(
        self, bars: Sequence[Bar], whole: Sequence[Bar], width: Callable[[Bar], float], size: float,
        badges: Mapping[str, str] = _NO_BADGES,
    ) -> None:  # fmt: skip
        self.width, self.size, self.badges = width, size, badges
        self.shared = _find_shared(bars)
        spelled = [bar for bar in bars if bar.kind in _SPELLED and bar.label]
        known = [bar for bar in whole if bar.kind in _SPELLED and bar.label]
        ranked = sorted(_sum_up(known), key=lambda one: (-one.seconds, one.label))
        written = {bar.label for bar in spelled if self._fits(bar, bar.label)}
        coded = {bar.label for bar in spelled if not self._fits(bar, bar.label) and self._has_room(bar, 1)}
        self.codes = dict(zip((one.label for one in ranked if one.label in coded), _LETTERS, strict=False))
        with_code = [replace(one, code=self.codes[one.label]) for one in ranked if one.label in self.codes]
        self.entries = [
            *with_code,
            *(one for one in ranked if one.label not in self.codes and one.label not in written),
        ]

    def keep_codes(self, codes: Collection[str]) -> None:
        """Write no letters but these into bars: those that a table has room to explain."""
        self.codes = {label: code for label, code in self.codes.items() if code in codes}

    def text(self, bar: Bar) -> str:
        """Return what is written into a bar, "" where not even a letter has room."""
        badge = self.badge(bar)
        for said in (bar.more, bar.label):
            if self._fits(bar, said):
                return f"{badge}: {visible(said)}" if badge else visible(said)
        if bar.kind == "copy":
            badge = self.badges.get(bar.group or "", "")
        code = self.codes.get(bar.label, "") if bar.kind in _SPELLED else ""
        texts = (f"{badge}{code}", badge)
        return next((text for text in texts if text and self.width(bar) >= self.room(len(text))), "")

    def badge(self, bar: Bar) -> str:
        """Return the badge of a bar's group, "" on a track that is all of one group."""
        return self.badges.get(bar.group or "", "") if bar.track in self.shared else ""

    def room(self, letters: int) -> float:
        """Return how wide a bar has to be for so many letters, in points."""
        return self.size * _CODE + 0.6 if letters == 1 else letters * self.size * LETTER + 4

    def _fits(self, bar: Bar, text: str) -> bool:
        return bool(text) and self._has_room(bar, len(visible(text)), ": ")

    def _has_room(self, bar: Bar, letters: int, between: str = "") -> bool:
        """Return whether a bar has room for so many letters behind the badge that it needs."""
        badge = self.badge(bar)
        return self.width(bar) >= self.room(letters + len(badge + between) * bool(badge))


def _find_shared(bars: Iterable[Bar]) -> set[int]:
    """Return the tracks with bars of several groups."""
    groups: dict[int, set[str]] = {}
    for bar in bars:
        if bar.group is not None:
            groups.setdefault(bar.track, set()).add(bar.group)
    return {track for track, found in groups.items() if len(found) > 1}


def _sum_up(bars: Iterable[Bar]) -> list[Entry]:
    found: dict[str, list[Bar]] = {}
    for bar in bars:
        found.setdefault(bar.label, []).append(bar)
    return [_sum_label(label, some) for label, some in found.items()]


def _sum_label(label: str, bars: Sequence[Bar]) -> Entry:
    worked = [bar for bar in bars if bar.kind != "launch"] or bars
    seconds = sum(bar.end - bar.start for bar in worked)
    error = sum((bar.end - bar.start) * bar.error for bar in worked) / seconds if seconds else 0.0
    return Entry("", label, sum(bar.count for bar in worked), seconds, error)
