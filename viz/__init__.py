"""Draw annotated device graphs and tables: frozen records in; DOT, SVG, PNG, PDF, HTML or text out.

Describe what to draw with `Figure` (of `Group`, `Node`, `Edge`) or `Table` (of `Column`); records check themselves.
`to_dot` and `to_text` are pure. `draw`, `render` and `inline_svg` run Graphviz in a process of its own:
a `dot` on PATH, otherwise the Graphviz in pygraphviz's wheels. A wrong record raises `FigureError`,
a drawing that fails raises `LayoutError`.

>>> figure = Figure("Two ops", nodes=(Node("x", "x"), Node("y", "y")), edges=(Edge("x", "y"),))
>>> draw(figure, "png")[1:4]
b'PNG'
"""

from viz.dot import to_dot
from viz.errors import FigureError, LayoutError
from viz.figure import Direction, Edge, EdgeKind, Figure, Group, Node, NodeKind
from viz.html import NotebookFigure, inline_svg, to_html
from viz.layout import Format, draw, render
from viz.table import Align, Column, Table
from viz.text import print_table, to_text

__all__ = [
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
    "Table",
    "draw",
    "inline_svg",
    "print_table",
    "render",
    "to_dot",
    "to_html",
    "to_text",
]
