"""The looks that a drawing may have: colours of the page, its size in print, whether it has a heading."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from viz.errors import FigureError

_TEXT = 11.0  # points: a node's label before the drawing is scaled


@dataclass(frozen=True, slots=True)
class Style:
    """Record of how a drawing looks on its page.

    `text` is the size in points that a node's label should have, as long as the drawing is no wider than one of
    `widths` (inches, narrowest first; () for any) and no higher than `height` (0 for any). `enlarges` lets a drawing
    that is smaller than its page grow to fill it. `aspect` is the wanted width over height, `boxes` how many nodes such
    a page takes, and `fewest` how many are left at least where fewer would make text larger. Without `has_heading`,
    title and caption are left to what surrounds the drawing; a caption has at most `lines` (0 for any). No text is
    smaller than `least` points where a node's label has the wanted size. `pad` are points around a drawing before it
    is scaled.
    """

    name: str
    ink: str = "#1a1a1a"
    faint_ink: str = "#4a4a4a"
    warning_ink: str = "#8c2200"
    paper: str = "#ffffff"
    frame: str = "#bbbbbb"
    grid: str = "#d9dde2"
    stripe: str = "#f4f5f7"
    text: float = _TEXT
    widths: tuple[float, ...] = ()
    height: float = 0.0
    enlarges: bool = False
    aspect: float = 1.4
    boxes: int = 40
    fewest: int = 1
    has_heading: bool = True
    lines: int = 0
    least: float = 0.0
    pad: float = 10.8
    is_dark: bool = False

    @property
    def scale(self) -> float:
        """Return by what a drawing is scaled for its text to have the wanted size."""
        return self.text / _TEXT

    @property
    def smallest(self) -> int:
        """Return the size of the smallest text in points before the drawing is scaled, 0 for any.

        Where a drawing fills its page, all text but titles has one size, so that the drawing can be larger.
        """
        return int(_TEXT) if self.enlarges else math.ceil(self.least / self.scale)

    @property
    def legible(self) -> float:
        """Return the share of the wanted size that a node's label may have before any text is smaller than `least`."""
        return self.least / (self.smallest * self.scale) if self.smallest else 0.0


SCREEN = Style("screen")

STYLES: Mapping[str, Style] = {
    "screen": SCREEN,
    "paper": Style(
        "paper", text=8.0, widths=(10 / 3, 7.0), height=9.25, aspect=1.0, boxes=24, least=7.0, pad=1.5,
        has_heading=False,
    ),
    "slide": Style(
        "slide", text=14.0, widths=(40 / 3,), height=7.5, enlarges=True, aspect=1.85, boxes=20, fewest=4, least=12.0,
        lines=1, pad=4.0,
    ),
    "dark": Style(
        "dark", ink="#f4f4f4", faint_ink="#c9cdd2", warning_ink="#ffb38a", paper="#14171c", frame="#4b525c",
        grid="#333a43", stripe="#1b2027", is_dark=True,
    ),
}  # fmt: skip


def style_called(name: str) -> Style:
    """Return a style by name; raise `FigureError` with the choices otherwise."""
    if name not in STYLES:
        raise FigureError(f"{name!r} is not a style; choose from: {', '.join(STYLES)}")
    return STYLES[name]


def fitted(style: Style, width: float, height: float) -> float:
    """Return by what to scale a drawing of that size in points.

    The narrowest width that takes the drawing at the wanted text size is used, otherwise the widest.

    >>> fitted(STYLES["paper"], 300, 200) == 8 / 11, round(fitted(STYLES["paper"], 1008, 200), 2)
    (True, 0.5)
    """
    if not style.widths:
        return style.scale
    largest = style.widths[-1] * 72 / width
    if style.height:
        largest = min(largest, style.height * 72 / height)
    if style.enlarges:
        return min(largest, 2 * style.scale)
    return min(largest, style.scale)


def page_of(style: Style, width: float, height: float) -> tuple[float, float]:
    """Return the page of a drawing of that size, all in points: its narrowest width that fits, and the height needed.

    A style that enlarges drawings has one page, which is filled.

    >>> page_of(STYLES["paper"], 200, 100), page_of(STYLES["slide"], 200, 100)
    ((240.0, 100), (960.0, 540.0))
    """
    widths = [72 * one for one in style.widths]
    found = next((one for one in widths if width <= one + 0.01), widths[-1])
    return round(found, 2), round(style.height * 72, 2) if style.enlarges else height
