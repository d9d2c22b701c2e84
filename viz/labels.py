"""Labels in Graphviz's markup, built from text that may hold anything."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

import graphviz

from viz.names import elide, visible

LABEL_LIMIT = 32
SUBLABEL_LIMIT = 40
SUBTITLE_LIMIT = 46  # of a device, which is wider than a node
_SIZE = re.compile(r'point-size="(\d+)"')
_PIECE = 4000  # Graphviz reads strings of 16 KiB at most, unless continued on a new line


def text(raw: str, limit: int = LABEL_LIMIT) -> str:
    """Escape `raw` for a label's markup, shortened in the middle; text with nothing to see becomes "(no name)".

    >>> text("<b>&")
    '&lt;b&gt;&amp;'
    """
    if not raw.strip():
        return "(no name)"
    return escape(elide(visible(raw), limit)).replace("\\", "\\\\")  # Graphviz expands \N in markup too


def plain(raw: str) -> str:
    r"""Escape `raw` for a label without markup, where Graphviz resolves backslashes and `&lt;`.

    >>> print(plain("a&lt;b\\N"))
    a&amp;lt;b\\N
    """
    escaped: str = graphviz.escape(raw.replace("&", "&amp;"))  # a kind of str, as below
    return escaped


def small(markup: str, colour: str, size: float = 9) -> str:
    """Set `markup` in a smaller size (points) and a colour.

    >>> small("x", "#4a4a4a")
    '<font point-size="9" color="#4a4a4a">x</font>'
    """
    return f'<font point-size="{size:g}" color="{colour}">{markup}</font>'


def enlarge_small(dot: str, least: int) -> str:
    """Raise all smaller text of markup to a size of `least` points; Graphviz takes whole points.

    >>> enlarge_small(small("x", "#4a4a4a"), 10)
    '<font point-size="10" color="#4a4a4a">x</font>'
    """
    return _SIZE.sub(lambda found: f'point-size="{max(int(found[1]), least)}"', dot) if least else dot


def bold(markup: str) -> str:
    """Set `markup` in bold."""
    return f"<b>{markup}</b>"


def label(lines: Iterable[str], align: str = "center") -> str:
    """Stack lines of markup to a whole label.

    >>> label(["a"])
    '<a>'
    >>> label(["a", "b"]).count("<tr>")
    2
    """
    lines = tuple(lines)
    if len(lines) == 1 and align == "center":
        return f"<{lines[0]}>"
    # Rows of a table, for lines broken by <br/> sit so close that an underscore touches the line below it.
    rows = "".join(f'<tr><td align="{align}">{line}</td></tr>' for line in lines)
    return f'<<table border="0" cellborder="0" cellspacing="0" cellpadding="1">{rows}</table>>'


def hover(*parts: str) -> str:
    r"""Join what is not empty to the text shown on hover, safe as a DOT string.

    Graphviz resolves `&lt;` in it, and backslashes twice.

    >>> print(hover("a&b", "", "c\\N"))
    a&amp;b: c\\\\N
    """
    plain = ": ".join(visible(part) for part in parts if part)
    pieces = (plain[at : at + _PIECE] for at in range(0, len(plain), _PIECE))
    escaped = (piece.replace("&", "&amp;").replace("\\", "\\" * 4) for piece in pieces)
    joined: str = graphviz.nohtml("\\\n".join(escaped))  # a kind of str that the package never takes for markup
    return joined
