"""Draw a figure or chart: bytes of the kind that a file's name asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from simplace.errors import DrawingError, join_choices
from simplace.views.figures.caption_files import write_captions
from simplace.views.file_mark import check_replaceable, write_file
from viz import (
    Figure,
    FigureError,
    LayoutError,
    area_drawing,
    draw,
    gantt_drawing,
    measure_empty,
    measure_text,
    render,
    to_dot,
)
from viz.area import AreaChart
from viz.gantt import Gantt
from viz.names import visible
from viz.style import STYLES, Style, style_called
from viz.svg import described

_TRIED, _EACH = 10, 10  # numbers of boxes that are tried for a page; of so few, each is
_EMPTIEST, _FEWER = 0.34, 2  # of a page: where more is empty, half as many boxes at least may fill it better
KINDS = ("svg", "png", "pdf", "dot")


def draw_picture(what: Figure | Gantt | AreaChart, name: str, style: str = "screen") -> bytes:
    """Return the picture for a file `name`; raise `DrawingError` for its ending, the style, or Graphviz failures."""
    kind = Path(name).suffix.lower()[1:]
    if kind not in KINDS:
        raise DrawingError(f"{name}: a figure's name ends in {', '.join(f'.{one}' for one in KINDS)}")
    found = style_of(style)
    try:
        if isinstance(what, Figure):
            return to_dot(what, found).encode() if kind == "dot" else draw(what, kind, style=found)  # type: ignore[arg-type]
        dot = area_drawing.to_dot(what, found) if isinstance(what, AreaChart) else gantt_drawing.to_dot(what, found)
        if kind == "dot":
            return dot.encode()
        data = render(dot, kind)  # type: ignore[arg-type]
        return described(data, what.title, what.description) if kind == "svg" else data
    except LayoutError as error:
        raise DrawingError(f"{name}: {error}") from None


def fit_boxes(make: Callable[[int], Figure], style: str, limit: int) -> Figure:
    """Return a figure of at most `limit` boxes, or of fewer where else its text is too small or its page too empty.

    A page too empty has no fewer than half of its boxes for that. If no number helps, it is the least empty one with
    legible text, else the one with the largest text; the first of several.
    """
    found = style_of(style)
    if not found.least:
        return make(limit)
    tried = _TRIED if limit > _EACH else limit
    shares = (max(limit * share // tried, min(found.fewest, limit)) for share in range(tried, -1, -1))
    small: list[tuple[float, Figure]] = []
    empty: list[tuple[float, Figure]] = []
    last = None
    for boxes in dict.fromkeys((*shares, 1)):
        figure = make(boxes)
        if figure == last:
            continue
        last = figure
        if empty and len(figure.nodes) * _FEWER < len(empty[0][1].nodes):
            break
        try:
            text = measure_text(figure, found)
            if text < found.legible:
                small.append((text, figure))
                continue
            share = measure_empty(figure, found)
        except LayoutError:
            return make(limit)  # which drawing will refuse with a reason, or write as DOT
        if share <= _EMPTIEST:
            return figure
        empty.append((share, figure))
    if empty:
        return min(empty, key=lambda pair: round(pair[0], 3))[1]
    return max(small, key=lambda pair: round(pair[0], 3))[1]


def write_beside(what: Figure | Gantt | AreaChart, file: str | Path, style: str) -> list[Path]:
    """Write the caption of a figure for print beside it, and return the files written, [] for another style."""
    if style_of(style).has_heading or not Path(file).is_file():
        return []
    return write_captions(what.title, what.description, what.caption, file)


@dataclass(frozen=True, slots=True, repr=False)
class Picture:
    """Record of a figure or chart with the name of its style; a notebook shows it, `save` writes it to a file."""

    what: Figure | Gantt | AreaChart
    style: str = "screen"

    def save(self, file: str | Path, overwrite: bool = False) -> None:
        """Draw to an .svg, .png, .pdf or .dot file; raise `DrawingError` as `draw_picture` does, or if it cannot write.

        A file that simplace did not write is replaced only with `overwrite`.
        """
        check_replaceable(file, overwrite)
        data = draw_picture(self.what, str(file), self.style)
        write_file(file, data, overwrite)
        write_beside(self.what, file, self.style)

    def __repr__(self) -> str:
        return f"<picture of {visible(self.what.title)}>"

    def _repr_svg_(self) -> str:
        return draw_picture(self.what, "notebook.svg", self.style).decode()


def choose_figure(figure: str, known: Iterable[str]) -> str:
    """Return the name of a figure; raise `DrawingError` with the choices for an unknown one."""
    names = list(known)
    if figure not in names:
        raise DrawingError(f"{figure!r} is not a figure of this; there are: {join_choices(names)}")
    return figure


def style_of(name: str) -> Style:
    """Return a style by name; raise `DrawingError` with the choices otherwise."""
    try:
        return style_called(name)
    except FigureError:
        raise DrawingError(f"{name!r} is not a style of figures; there are: {join_choices(STYLES)}") from None
