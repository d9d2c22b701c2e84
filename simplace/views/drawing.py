"""Make a picture of a figure or chart: bytes of the kind that a file's name asks for."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from simplace.errors import DrawingError, choices
from viz import Figure, FigureError, LayoutError, area, draw, gantt, render, to_dot
from viz.area import AreaChart
from viz.gantt import Gantt
from viz.style import STYLES, Style, style_called
from viz.svg import described

KINDS = ("svg", "png", "pdf", "dot")


def drawn(what: Figure | Gantt | AreaChart, name: str, style: str = "screen") -> bytes:
    """Draw for the file `name`; raise `DrawingError` for an unknown ending or style, or where Graphviz fails."""
    kind = Path(name).suffix.lower()[1:]
    if kind not in KINDS:
        raise DrawingError(f"{name}: a figure's name ends in {', '.join(f'.{one}' for one in KINDS)}")
    found = style_of(style)
    try:
        if isinstance(what, Figure):
            return to_dot(what, found).encode() if kind == "dot" else draw(what, kind, style=found)  # type: ignore[arg-type]
        dot = area.to_dot(what, found) if isinstance(what, AreaChart) else gantt.to_dot(what, found)
        if kind == "dot":
            return dot.encode()
        data = render(dot, kind)  # type: ignore[arg-type]
        return described(data, what.title, what.description) if kind == "svg" else data
    except LayoutError as error:
        raise DrawingError(f"{name}: {error}") from None


def write(what: Figure | Gantt | AreaChart, name: str | Path, style: str = "screen") -> None:
    """Draw to a file; raise `DrawingError` as `drawn` does, or where the file cannot be written."""
    data = drawn(what, str(name), style)
    try:
        Path(name).write_bytes(data)
    except OSError as error:
        raise DrawingError(f"{name}: cannot write: {error.strerror}") from None


def chosen(figure: str, known: Iterable[str]) -> str:
    """Return the name of a figure; raise `DrawingError` with the choices for an unknown one."""
    names = list(known)
    if figure not in names:
        raise DrawingError(f"{figure!r} is not a figure of this; there are: {choices(names)}")
    return figure


def style_of(name: str) -> Style:
    """Return a style by name; raise `DrawingError` with the choices otherwise."""
    try:
        return style_called(name)
    except FigureError:
        raise DrawingError(f"{name!r} is not a style of figures; there are: {choices(STYLES)}") from None
