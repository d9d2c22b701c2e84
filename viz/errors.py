"""The errors that viz raises."""

from __future__ import annotations


class FigureError(ValueError):
    """Report a figure or table whose parts do not fit together; `str()` names the part and the choices."""


class LayoutError(RuntimeError):
    """Report a drawing that Graphviz could not make: no Graphviz, bad DOT, a crash, out of time."""
