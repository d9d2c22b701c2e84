"""Draw boxes and lines of text at fixed places, as DOT whose positions Graphviz keeps (its `nop2` only draws)."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, inf

from graphviz import Digraph

from viz import labels
from viz.names import elide, elide_title, visible
from viz.style import Style, fitted, page_of

_TITLE, _BARE = 46.0, 6.0  # points: the height of a title with a line below it, and what is left without any


class Canvas:
    """Collect boxes on a page of a size in points; `y` counts downwards, as Graphviz does not."""

    def __init__(self, name: str, width: float, height: float, style: Style) -> None:
        self.width = width
        self.height = height
        self._style = style
        self._serial = 0
        scale = fitted(style, width, height)
        self._graph = Digraph(
            name,
            graph_attr={
                "layout": "nop2", "bb": f"0,0,{width:.2f},{height:.2f}", "pad": "0",
                "bgcolor": style.paper, "outputorder": "nodesfirst",
                **self._place_on_page(scale),
            },
            node_attr={
                "shape": "box", "fixedsize": "true", "style": "filled", "penwidth": "0", "margin": "0",
                "fontname": "DejaVu Sans", "fontsize": "8", "fontcolor": style.ink, "label": "", "tooltip": " ",
            },
        )  # fmt: skip
        self.box(0, 0, width, height, style.paper)

    def _place_on_page(self, scale: float) -> dict[str, str]:
        """Return the attributes that scale the drawing, in the middle of its page where it has one, at its top."""
        if not self._style.widths:
            return {} if scale == 1 else {"size": f"{self.width * scale / 72:.2f},{self.height * scale / 72:.2f}!"}
        wide, high = page_of(self._style, self.width * scale, self.height * scale)
        middle = f"{self.width / 2:.2f},{self.height - high / scale / 2:.2f}"
        return {"viewport": f"{wide:.2f},{high:.2f},{scale:.5f},{middle}", "margin": "0"}

    @property
    def dot(self) -> str:
        """Return the drawing as DOT."""
        source: str = self._graph.source
        return source

    def size(self, points: float) -> float:
        """Return the size of text, in points before scaling, that is to have that many, or as many as the style needs.

        >>> from viz.style import STYLES
        >>> Canvas("x", 240, 100, STYLES["paper"]).size(8), Canvas("x", 240, 100, STYLES["screen"]).size(8)
        (9.63, 8)
        """
        return enlarge_text(self._style, points)

    def text(
        self, x: float, y: float, text: str, room: float, *, size: float, colour: str = "", bold: bool = False,
        centre: bool = False,
    ) -> None:  # fmt: skip
        """Write a line of text, its middle at height `y`, from `x` on (a trailing break aligns left in Graphviz)."""
        if not text:
            return
        label = labels.plain(text) if centre else labels.plain(text) + "\\l"
        if bold:
            cell = f'<td align="left" width="{room:.0f}"><b>{labels.text(text, len(text))}</b></td>'
            label = f'<<table border="0" cellpadding="0" cellspacing="0"><tr>{cell}</tr></table>>'
        look_of = {"style": "", "fontsize": f"{size:g}", "fontcolor": colour or self._style.ink}
        self.box(x, y - size / 2, room, size, "none", label=label, tooltip=text, **look_of)

    def heading(self, title: str, lines: Sequence[str], room: float, *, size: float, step: float) -> None:
        """Write a title with faint lines below it at the top; the lines alone in a style without headings."""
        first = _BARE + step / 2
        if self._style.has_heading:
            self.text(8, 13, elide_title(visible(title), int(room / 8)), room, size=13, bold=True)
            first = _TITLE - 16.0
        for i, line in enumerate(lines):
            self.text(8, first + i * step, line, room, size=size, colour=self._style.faint_ink)

    def box(self, x: float, y: float, width: float, height: float, fill: str, **extra: str) -> None:
        """Draw a box with its upper left corner at `x` and `y`; `extra` are Graphviz attributes, a tooltip any text."""
        self._serial += 1
        if "tooltip" in extra:
            extra["tooltip"] = labels.hover(extra["tooltip"])
        attributes = {
            "pos": f"{x + width / 2:.2f},{self.height - y - height / 2:.2f}",
            "width": f"{width / 72:.4f}",
            "height": f"{height / 72:.4f}",
            **({} if fill == "none" else {"fillcolor": fill}),
            **extra,
        }
        self._graph.node(f"n{self._serial}", **attributes)


def enlarge_text(style: Style, points: float) -> float:
    """Return the size of text before scaling: as wanted, or the least that the style prints."""
    return max(points, ceil(style.least / style.scale * 100) / 100)


def page_height(style: Style) -> float:
    """Return how high a drawing may be so that its text keeps its size on the style's page: infinity for any."""
    return style.height * 72 / style.scale if style.widths and style.height else inf


def heading_height(style: Style, lines: int, step: float) -> float:
    """Return the height of a title with so many lines below it; in a style without headings, that of the lines.

    >>> heading_height(Style(""), 2, 14.0), heading_height(Style("", has_heading=False), 0, 14.0)
    (60.0, 6.0)
    """
    return _TITLE + max(lines - 1, 0) * step if style.has_heading else _BARE + lines * step


def axis_width(style: Style, margins: float, natural: float = 960.0) -> float:
    """Return how wide a time axis is beside margins of that width, so that text keeps its size on the style's page.

    >>> axis_width(Style(""), 100), axis_width(Style("", widths=(7.0,)), 104)
    (960.0, 400.0)
    """
    if not style.widths:
        return natural
    return max(style.widths[-1] * 72 / style.scale - margins, 200.0)


def wrap_caption(caption: str, letters: int) -> list[str]:
    """Break a caption at line ends, and at "; " where a line has more letters than that; what has no "; " is shortened.

    >>> wrap_caption("one thread; two cores; costs", 22)
    ['one thread; two cores;', 'costs']
    """
    lines: list[str] = []
    for paragraph in caption.split("\n"):
        parts = paragraph.split("; ")
        lines.append(parts[0])
        for part in parts[1:]:
            if len(lines[-1]) + len(part) + 3 <= letters:
                lines[-1] += f"; {part}"
            else:
                lines[-1] += ";"
                lines.append(part)
    return [elide(visible(line), letters) for line in lines]
