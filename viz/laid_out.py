"""Edit DOT that Graphviz has laid out: fit it to a page, write titles of clusters above the lines that cross them."""

from __future__ import annotations

import re

from viz.style import Style, fitted, page_of

_BOX = re.compile(r'\bbb="[-\d.]+,[-\d.]+,(?P<width>[-\d.]+),(?P<height>[-\d.]+)"')
_NUMBER = re.compile(r"[-\d.]+")
_CLUSTER = re.compile(r'subgraph "cluster [^\n]*" \{\n\t+graph \[(?P<attributes>.*?)\n\t+\];\n', re.DOTALL)
_LABEL = re.compile(r"label=(?P<label><<table.*?</table>>),\n", re.DOTALL)
_NUMBERS = {name: re.compile(rf'\b{name}="?(?P<value>[-\d.]+(?:,[-\d.]+)?)"?') for name in ("lp", "lwidth", "lheight")}
_FILL = re.compile(r'\bfillcolor="(?P<fill>#[0-9a-f]{6})"')


def finished(laid: str, style: Style, titles: bool = True) -> str:
    """Return DOT that Graphviz draws as it stands, at the size that `style` wants, with titles above lines if wished.

    >>> finished('digraph {\\n\\tgraph [bb="0,0,100,50"\\n\\t];\\n}\\n', Style("", text=5.5)).splitlines()[1]
    '\\tgraph [layout=nop2, size="0.84,0.50!", bb="0,0,100,50"'
    """
    return _sized(_titled(laid) if titles else laid, style)


def scale_of(laid: str, style: Style) -> float:
    """Return by what `style` scales a layout; 1 for one without nodes, which has no size."""
    size = _size(laid, style)
    return fitted(style, *size) if size else 1.0


def _size(laid: str, style: Style) -> tuple[float, float] | None:
    box = _BOX.search(laid)
    return None if box is None else (float(box["width"]) + 2 * style.pad, float(box["height"]) + 2 * style.pad)


def _sized(laid: str, style: Style) -> str:
    size, scale = _size(laid, style), scale_of(laid, style)
    asked = ""
    if size and style.widths:
        asked = _write_viewport(laid, page_of(style, size[0] * scale, size[1] * scale), scale)
    elif size and scale != 1:
        asked = f'size="{size[0] * scale / 72:.2f},{size[1] * scale / 72:.2f}!", '
    return laid.replace("graph [", f"graph [layout=nop2, {asked}", 1)


def _write_viewport(laid: str, page: tuple[float, float], scale: float) -> str:
    """Return the attributes that put the middle of a layout in the middle of a page, given in points."""
    found = _BOX.search(laid)
    assert found is not None, "a layout of a size has a box"
    left, low, right, top = map(float, _NUMBER.findall(found[0].partition("=")[2]))
    middle = f"{(left + right) / 2:.2f},{(low + top) / 2:.2f}"
    return f'viewport="{page[0]:.2f},{page[1]:.2f},{scale:.5f},{middle}", margin=0, '


def _titled(laid: str) -> str:
    """Write each cluster's title once more, as a node on a ground of the cluster's colour: nodes come after edges."""
    titles = [_title(found["attributes"], i) for i, found in enumerate(_CLUSTER.finditer(laid))]
    end = laid.rindex("}")
    return laid[:end] + "".join(titles) + laid[end:]


def _title(attributes: str, number: int) -> str:
    label, fill = _LABEL.search(attributes), _FILL.search(attributes)
    place, width, height = (_NUMBERS[name].search(attributes) for name in ("lp", "lwidth", "lheight"))
    if label is None or fill is None or place is None or width is None or height is None:
        return ""
    size = f"width={width['value']}, height={height['value']}, fixedsize=true, margin=0"
    look = f'shape=box, style=filled, penwidth=0, fillcolor="{fill["fill"]}"'
    return f'\t"title {number}" [label={label["label"]}, pos="{place["value"]}", {size}, {look}];\n'
