"""Put figures and tables into a page or notebook, as elements that need no file and no style sheet."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from html import escape

from viz.figure import Figure
from viz.layout import draw
from viz.names import elide, visible
from viz.palette import FAINT_INK
from viz.svg import prefix_ids
from viz.table import Column, Table

_CELL_LIMIT = 80  # letters; the whole text is shown on hover
_PADDING = "padding:2px 14px 2px 0;border-bottom:1px solid #dddddd"


def inline_svg(figure: Figure, *, timeout_s: float = 60.0) -> str:
    """Draw `figure` as an `<svg>` element for an HTML page; it scales with the page, at most to its natural size.

    Raises:
        LayoutError: as `viz.layout.render`.
    """
    return embedded_svg(draw(figure, "svg", timeout_s=timeout_s))


def embedded_svg(svg: bytes) -> str:
    """Turn an SVG file into an `<svg>` element for an HTML page, which scales with the page.

    Element ids begin with a digest of the drawing, so that several drawings fit on one page.
    """
    drawing = svg.decode("utf-8")
    element = drawing[drawing.index("<svg") :].strip()
    element = element.replace("<svg ", '<svg style="max-width:100%;height:auto" ', 1)
    return prefix_ids(element, f"viz-{hashlib.sha256(svg).hexdigest()[:8]}-")


def to_html(table: Table) -> str:
    """Write `table` as a `<table>` element; cells are escaped, and long ones lose their middle.

    >>> "<b>" in to_html(Table((Column("op"),), (("<b>",),)))
    False
    """
    head = "".join(_cell("th", column.title, column) for column in table.columns)
    rows = ("".join(_cell("td", text, of) for text, of in zip(row, table.columns, strict=True)) for row in table.rows)
    body = "".join(f"<tr>{row}</tr>" for row in (head, *rows))
    title = f'<caption style="text-align:left">{escape(visible(table.title))}</caption>' if table.title else ""
    footer = f'<div style="color:{FAINT_INK}">{escape(visible(table.footer))}</div>' if table.footer else ""
    return f'<table style="border-collapse:collapse;margin:6px 0">{title}{body}</table>{footer}'


def _cell(tag: str, text: str, column: Column) -> str:
    shown = elide(visible(text), _CELL_LIMIT)
    hover = f' title="{escape(visible(text))}"' if shown != text else ""
    return f'<{tag} style="{_PADDING};text-align:{column.align}"{hover}>{escape(shown)}</{tag}>'


@dataclass(frozen=True, slots=True)
class NotebookFigure:
    """Show `figure` drawn where a notebook displays this value."""

    figure: Figure

    def _repr_html_(self) -> str:
        return inline_svg(self.figure)
