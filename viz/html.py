"""Put a figure into a page or notebook as inline SVG."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from viz.dot import to_dot
from viz.figure import Figure
from viz.layout import render
from viz.svg import prefix_ids


def inline_svg(figure: Figure, *, timeout_s: float = 60.0) -> str:
    """Draw `figure` as an `<svg>` element for an HTML page; it scales with the page, at most to its natural size.

    Element ids begin with a digest of the figure's DOT, so that several figures fit on one page.

    Raises:
        LayoutError: as `viz.layout.render`.
    """
    dot = to_dot(figure)
    drawing = render(dot, "svg", timeout_s=timeout_s).decode("utf-8")
    element = drawing[drawing.index("<svg") :].strip()
    element = element.replace("<svg ", '<svg style="max-width:100%;height:auto" ', 1)
    return prefix_ids(element, f"viz-{hashlib.sha256(dot.encode()).hexdigest()[:8]}-")


@dataclass(frozen=True, slots=True)
class NotebookFigure:
    """Show `figure` drawn where a notebook displays this value."""

    figure: Figure

    def _repr_html_(self) -> str:
        return inline_svg(self.figure)
