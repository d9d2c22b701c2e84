"""How each kind of node and edge is drawn: Graphviz attributes, with the legend's words for them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from viz.figure import Edge, EdgeKind, Node, NodeKind
from viz.palette import DeviceLook
from viz.style import SCREEN, Style


@dataclass(frozen=True, slots=True)
class NodeMark:
    """Return the Graphviz shape of a node kind and its outline in points; "box" takes the corners of its device."""

    shape: str
    meaning: str
    width: float = 0.9


@dataclass(frozen=True, slots=True)
class EdgeMark:
    """Return the line of an edge kind: a Graphviz style, arrowhead, and the width in points of a single edge."""

    style: str
    is_faint: bool
    arrow: str
    width: float
    meaning: str

    def colour(self, style: Style) -> str:
        """Return the ink of the line."""
        return style.faint_ink if self.is_faint else style.ink


NODE_MARKS: dict[NodeKind, NodeMark] = {
    "op": NodeMark("box", "op"),
    "scope": NodeMark("folder", "scope (number of ops)"),
    "argument": NodeMark("ellipse", "argument"),
    "result": NodeMark("ellipse", "result", 2.2),
    "variable": NodeMark("cylinder", "variable"),
    "copy": NodeMark("note", "copied tensor", 0.8),
    "send": NodeMark("invhouse", "send", 1.2),
    "receive": NodeMark("house", "receive", 1.2),
    "part": NodeMark("box", "part of the program (number of ops)"),
    "collective": NodeMark("box", "collective", 1.6),
}

EDGE_MARKS: dict[EdgeKind, EdgeMark] = {
    "data": EdgeMark("solid", True, "normal", 0.9, "data"),
    "control": EdgeMark("dotted", True, "vee", 1.1, "control dependency"),
    "copy": EdgeMark("solid", False, "normal", 2.6, "copy to another device"),
    "collective": EdgeMark("solid", False, "normal", 1.8, "takes part in a collective"),
    "tie": EdgeMark("solid", True, "none", 0.9, "must share a device"),
}

_CHANGED_WIDTH = 3.0  # points
_FLAT_MARGIN = "0.11,0.02"  # inches: a cylinder that is to be no higher than a box, for a page of little height
CHANGED_MEANING = "changed"
REQUESTED_MEANING = "requested another device"
HOST_MEMORY_MEANING = "in host memory"
COUNT_MEANING = "thicker: more tensors"
SHARE_MEANING = "thicker: more bytes"
VISIBLE = 0.6  # points: lines of one kind that differ by less look the same
_THINNEST, _THICKEST = 1.2, 6.0  # points: lines whose width is given as a share


def line_width(edge: Edge) -> float:
    """Return the width in points: by the share that is given, else wider by 0.3 for each doubling of the count.

    More than five doublings make no difference.

    >>> line_width(Edge("a", "b")), line_width(Edge("a", "b", count=4))
    (0.9, 1.5)
    """
    if edge.share is not None:
        return round(_THINNEST + (_THICKEST - _THINNEST) * edge.share, 2)
    return round(EDGE_MARKS[edge.kind].width + 0.3 * min(math.log2(edge.count), 5), 2)


def node_attributes(node: Node, look: DeviceLook, style: Style = SCREEN) -> dict[str, str]:
    """Return the Graphviz attributes of a node, but its label, in the look of its device."""
    shape = NODE_MARKS[node.kind].shape
    corner = look.corner if shape == "box" else ""
    attributes = {
        "shape": shape,
        "style": ",".join(filter(None, ("filled", corner, "dashed" if node.host_memory else ""))),
        "fillcolor": look.fill,
        "color": look.line,
        "penwidth": f"{NODE_MARKS[node.kind].width:g}",
    }
    if style.enlarges and shape == "cylinder":
        attributes["margin"] = _FLAT_MARGIN
    if node.kind in ("copy", "collective"):
        attributes |= {"fillcolor": style.paper, "color": style.ink}
    if node.requested:
        attributes |= {"peripheries": "2", "color": style.warning_ink}
    if node.changed:
        attributes |= {"penwidth": f"{_CHANGED_WIDTH:g}", "color": style.ink}
    return attributes
