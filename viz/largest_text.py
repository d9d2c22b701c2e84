"""Choose the size of a chart's text on a page that it is to fill."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from viz.names import ELLIPSIS
from viz.style import Style

_SIZES = (2.0, 1.8, 1.6, 1.5, 1.4, 1.3, 1.2, 1.1)  # times the size that the style has


def draw_largest(draw: Callable[[Style], str], style: Style) -> str:
    """Return what `draw` makes with the largest text with which it shortens no more words than with the style's own.

    `draw` returns "" for a size with which it would leave something out. Styles that do not enlarge drawings have one
    size.

    >>> from viz.style import STYLES
    >>> draw_largest(lambda style: "all" if style.text < 20 else "al…", STYLES["slide"])
    'all'
    """
    plain = draw(style)
    if not style.enlarges or not plain:
        return plain
    for size in _SIZES:
        larger = draw(replace(style, text=style.text * size, least=style.least * size))
        if larger and larger.count(ELLIPSIS) <= plain.count(ELLIPSIS):
            return larger
    return plain
