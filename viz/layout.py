"""Turn figures, and DOT, into SVG, PNG or PDF bytes: lay out, fit to the page, draw, tidy."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Literal, get_args

from viz.dot import to_dot
from viz.engine import run_graphviz
from viz.errors import LayoutError
from viz.figure import Figure
from viz.laid_out import finished, scale_of
from viz.marks import NODE_MARKS
from viz.packing.measured_parts import measure_parts
from viz.packing.packed_page import Page, estimate_scale, lay_out_page, measure_empty_page
from viz.packing.placed_dot import write_placed_dot
from viz.style import SCREEN, Style
from viz.svg import described, tidy

Format = Literal["svg", "png", "pdf"]

_POINTS_PER_INCH = 72  # what Graphviz assumes for SVG and PDF; other values would scale them


def draw(
    figure: Figure,
    file_format: Format = "svg",
    *,
    style: Style = SCREEN,
    timeout_s: float = 60.0,
    dpi: int = 192,
) -> bytes:
    """Draw a figure; see `render`. An SVG carries the figure's title and description for readers who do not see it."""
    _check(file_format)
    laid = lay_out(figure, style, timeout_s)
    if file_format != "svg":
        return render(finished(laid, style), file_format, timeout_s=timeout_s, dpi=dpi)
    sized = finished(laid, style, titles=False)  # `tidy` does better: it lifts the titles, with a rim
    return described(render(sized, timeout_s=timeout_s), figure.title, figure.description)


def measure_text(figure: Figure, style: Style, *, timeout_s: float = 60.0) -> float:
    """Return the size of a node's label on the page of a style, as a share of the size that the style wants.

    It is an estimate, without the room that lines take, where a figure in rows would be too small even so.
    """
    if _is_packed(figure):
        text = estimate_scale(measure_parts(figure, style, timeout_s), style) / style.scale
        if text < style.legible:
            return text
    return scale_of(lay_out(figure, style, timeout_s), style) / style.scale


def measure_empty(figure: Figure, style: Style, *, timeout_s: float = 60.0) -> float:
    """Return the share of a figure's page that no device, label, heading or legend covers, 0 if it is not in rows."""
    return measure_empty_page(_lay_out_page(figure, style, timeout_s), style) if _is_packed(figure) else 0.0


def lay_out(figure: Figure, style: Style, timeout_s: float = 60.0) -> str:
    """Return the DOT of a figure with the places of everything."""
    if _is_packed(figure):
        return _packed(figure, style, timeout_s)
    return _largest([_laid_out(to_dot(one, style), timeout_s) for one in _directed(figure, style)], style)


def render(dot: str, file_format: Format = "svg", *, timeout_s: float = 60.0, dpi: int = 192) -> bytes:
    """Lay DOT out and return the drawing; the same DOT gives the same bytes.

    `dpi` (dots per inch) is for PNG alone, where as in PDF the system's fonts draw characters that `viz/fonts` lacks.

    Raises:
        LayoutError: no Graphviz is installed, the DOT does not parse, Graphviz failed, or `timeout_s` ran out.
    """
    _check(file_format)
    drawing = run_graphviz(dot, file_format, dpi if file_format == "png" else _POINTS_PER_INCH, timeout_s)
    return _TIDIED[file_format](drawing)


def _is_packed(figure: Figure) -> bool:
    return figure.arrangement == "rows" and bool(figure.nodes or figure.groups)


@lru_cache(maxsize=8)
def _packed(figure: Figure, style: Style, timeout_s: float) -> str:
    return write_placed_dot(figure, style, _lay_out_page(figure, style, timeout_s))


@lru_cache(maxsize=8)
def _lay_out_page(figure: Figure, style: Style, timeout_s: float) -> Page:
    rounded = frozenset(node.id for node in figure.nodes if NODE_MARKS[node.kind].shape != "box")
    return lay_out_page(measure_parts(figure, style, timeout_s), style, rounded)


def _directed(figure: Figure, style: Style) -> list[Figure]:
    """List what to lay out: for a page of a given size both directions, since an estimate may choose the smaller."""
    if figure.direction in ("down", "right") or not style.widths:
        return [figure]
    return [replace(figure, direction="down"), replace(figure, direction="right")]


@lru_cache(maxsize=8)  # one figure is often drawn in several formats
def _laid_out(dot: str, timeout_s: float) -> str:
    return run_graphviz(dot, "dot", _POINTS_PER_INCH, timeout_s).decode()


def _largest(layouts: list[str], style: Style) -> str:
    """Pick the layout whose text is largest on the page, the first of several."""
    return max(layouts, key=lambda laid: scale_of(laid, style)) if len(layouts) > 1 else layouts[0]


def _check(file_format: str) -> None:
    if file_format not in get_args(Format):
        raise LayoutError(f"cannot draw as {file_format!r}; choose from: {', '.join(get_args(Format))}")


def _dated(pdf: bytes) -> bytes:
    """Write a fixed date into a PDF: the bundled cairo writes the present one, whatever SOURCE_DATE_EPOCH says.

    The date keeps its length, so the file's table of offsets still holds.
    """
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    stamp = time.strftime("%Y%m%d%H%M%S", time.gmtime(int(epoch) if epoch.isdecimal() else 0))
    return re.sub(rb"(/CreationDate \(D:)\d{14}", rb"\g<1>" + stamp.encode(), pdf)


def _as_it_is(drawing: bytes) -> bytes:
    return drawing


_TIDIED: dict[Format, Callable[[bytes], bytes]] = {"svg": tidy, "png": _as_it_is, "pdf": _dated}
