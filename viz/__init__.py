"""Draw annotated device graphs and tables: frozen records in; DOT, SVG, PNG, PDF, HTML or text out.

Describe what to draw with `Figure` (of `Group`, `Node`, `Edge`) or `Table` (of `Column`); records check themselves.
`to_dot` and `to_text` are pure; `STYLES` are the looks for a screen, print, slides and dark pages. `draw`, `render` and
`inline_svg` run the Graphviz in pygraphviz's wheels in a process of its own; see `viz.engine`. A wrong record raises
`FigureError`, a drawing that fails raises `LayoutError`.

>>> from viz import Edge, Figure, Node, draw
>>> figure = Figure("Two ops", nodes=(Node("x", "x"), Node("y", "y")), edges=(Edge("x", "y"),))
>>> draw(figure, "png")[1:4]
b'PNG'
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from viz.errors import FigureError, LayoutError
from viz.table import Align, Column, Table
from viz.text import print_table, to_text

if TYPE_CHECKING:
    from viz.dot import to_dot
    from viz.figure import Direction, Edge, EdgeKind, Figure, Group, Node, NodeKind
    from viz.html import NotebookFigure, embedded_svg, inline_svg, to_html
    from viz.layout import Format, draw, measure_empty, measure_text, render
    from viz.style import STYLES, Style

# Imported when first asked for: a program that only writes tables does without Graphviz.
_LATER = {
    "viz.dot": ("to_dot",),
    "viz.figure": ("Direction", "Edge", "EdgeKind", "Figure", "Group", "Node", "NodeKind"),
    "viz.html": ("NotebookFigure", "embedded_svg", "inline_svg", "to_html"),
    "viz.layout": ("Format", "draw", "measure_empty", "measure_text", "render"),
    "viz.style": ("STYLES", "Style"),
}

__all__ = [
    "STYLES",
    "Align",
    "Column",
    "Direction",
    "Edge",
    "EdgeKind",
    "Figure",
    "FigureError",
    "Format",
    "Group",
    "LayoutError",
    "Node",
    "NodeKind",
    "NotebookFigure",
    "Style",
    "Table",
    "draw",
    "embedded_svg",
    "inline_svg",
    "measure_empty",
    "measure_text",
    "print_table",
    "render",
    "to_dot",
    "to_html",
    "to_text",
]


def __getattr__(name: str) -> Any:
    for module, names in _LATER.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
