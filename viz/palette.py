"""Colours and patterns of devices, told apart by colour-blind readers and on grey paper."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from viz.figure import NO_DEVICE, Group
from viz.style import SCREEN, Style

# The inks of the style "screen".
INK = SCREEN.ink
FAINT_INK = SCREEN.faint_ink
WARNING_INK = SCREEN.warning_ink
PAPER = SCREEN.paper

# Okabe & Ito (2008), less the black, which is the ink; wine is Paul Tol's. Neighbours differ in hue and in lightness.
_HUES = ("#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#f0e442", "#0072b2", "#d55e00", "#882255")
_GREYS = ("#a3a3a3", "#8fa3b3", "#b3a78f", "#9b8fb3")
_BORDERS = ("solid", "dashed", "dotted")
_ROUND = "rounded"
_PLAIN = ""


@dataclass(frozen=True, slots=True)
class DeviceLook:
    """Record of how a device and its nodes look: three colours, and a pattern that does without them.

    `corner` is a Graphviz style for boxes ("" is square), `border` the style of the cluster's line and
    `width` that line's width in points.
    """

    backdrop: str
    fill: str
    line: str
    corner: str
    border: str
    width: float


@dataclass(frozen=True, slots=True)
class _Pattern:
    hues: tuple[str, ...]
    corner: str
    border: int
    width: float


# CPU differs from accelerators in corners and weight of the border; accelerator types differ in the border's style.
_PATTERNS = {
    "CPU": _Pattern(_GREYS, _PLAIN, 0, 0.8),
    "GPU": _Pattern(_HUES, _ROUND, 0, 1.8),
    "TPU": _Pattern(_HUES[3:] + _HUES[:3], _ROUND, 1, 1.8),
}
_OTHER = _Pattern(_HUES[5:] + _HUES[:5], _PLAIN, 2, 1.8)


def look(group: Group, style: Style = SCREEN) -> DeviceLook:
    """Choose the look of a device by its kind and index; past the last hue, the cluster's border changes.

    >>> look(Group("a", "a", kind="GPU", index=0)).line == look(Group("b", "b", kind="GPU", index=1)).line
    False
    """
    if group.kind == NO_DEVICE:
        return replace(no_device(style), border="dashed")
    pattern = _pattern_of(group)
    hue, turn = _hue_of(group)
    backdrop, fill = (0.07, 0.26) if style.is_dark else (0.10, 0.34)
    return DeviceLook(
        backdrop=blend(hue, backdrop, style.paper),
        fill=blend(hue, fill, style.paper),
        line=blend(hue, 0.85) if style.is_dark else _shade(hue, 0.62),
        corner=pattern.corner,
        border=_BORDERS[(pattern.border + turn) % len(_BORDERS)],
        width=pattern.width,
    )


def band_fill(group: Group, style: Style = SCREEN) -> str:
    """Return the colour of an area: that of a device, deeper than its nodes, so that neighbours can be told apart."""
    hue, _ = _hue_of(group)
    return blend(hue, 0.36 if style.is_dark else 0.6, style.paper)


def no_device(style: Style = SCREEN) -> DeviceLook:
    """Return the look of what is on no device."""
    return DeviceLook(style.paper, style.paper, style.faint_ink, _PLAIN, "solid", 0.8)


def blend(colour: str, share: float, paper: str = PAPER) -> str:
    """Mix `share` (0 to 1) of a "#rrggbb" colour into that of the paper.

    >>> blend("#000000", 0.0), blend("#102030", 1.0)
    ('#ffffff', '#102030')
    """
    pairs = zip(_split(colour), _split(paper), strict=True)
    return _join(round(below + (part - below) * share) for part, below in pairs)


def contrast(one: str, other: str) -> float:
    """Return the WCAG 2 contrast ratio of two "#rrggbb" colours, from 1 to 21; text needs 4.5, good text 7.

    >>> round(contrast("#000000", "#ffffff"))
    21
    """
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _pattern_of(group: Group) -> _Pattern:
    return _PATTERNS.get(group.kind.upper(), _OTHER)


def _hue_of(group: Group) -> tuple[str, int]:
    """Return a device's hue, and how often the hues were used up before it."""
    hues = _pattern_of(group).hues
    turn, place = divmod(group.index, len(hues))
    return hues[place], turn


def _shade(colour: str, share: float) -> str:
    return _join(round(part * share) for part in _split(colour))


def _luminance(colour: str) -> float:
    red, green, blue = (_linear(part / 255) for part in _split(colour))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(part: float) -> float:
    return part / 12.92 if part <= 0.04045 else float(((part + 0.055) / 1.055) ** 2.4)


def _split(colour: str) -> tuple[int, ...]:
    return tuple(int(colour[at : at + 2], 16) for at in (1, 3, 5))


def _join(parts: Iterable[int]) -> str:
    return "#" + "".join(f"{part:02x}" for part in parts)
