"""Write the pieces of a figure as DOT: names, labels and looks of nodes, devices and the labels of edges."""

from __future__ import annotations

import re
from typing import Literal

import graphviz

from viz.figure import Edge, Figure, Group, Node
from viz.labels import LABEL_LIMIT, SUBLABEL_LIMIT, SUBTITLE_LIMIT, bold, hover, label, small, text
from viz.marks import EDGE_MARKS, line_width, node_attributes
from viz.palette import DeviceLook, look
from viz.shortening import count_rest
from viz.style import Style

FONT = "DejaVu Sans"
Way = Literal["down", "up", "right", "left"]
_ARROWS: dict[Way, tuple[str, str]] = {"down": ("↓", "↑"), "up": ("↑", "↓"), "right": ("→", "←"), "left": ("←", "→")}
_TITLE_LETTERS = 24  # of the title of a device with what is said below it: so few share a line where room is scarce
_PLAIN_ID = re.compile(r"[A-Za-z0-9_./\-]{1,200}\Z")
_PLAIN_GROUP_ID = re.compile(r"[A-Za-z0-9_./:\-]{1,200}\Z")


def name_nodes(figure: Figure) -> dict[str, str]:
    """Return the names of nodes in DOT, by id."""
    return {
        node.id: node.id if _PLAIN_ID.match(node.id) else f"node {place}"
        for place, node in enumerate(figure.nodes, start=1)
    }


def name_clusters(figure: Figure) -> dict[str, str]:
    """Return the names of devices in DOT, by id, without the word that makes them clusters."""
    return {
        group.id: group.id if _PLAIN_GROUP_ID.match(group.id) else f"device {place}"
        for place, group in enumerate(figure.groups, start=1)
    }


def node_defaults(style: Style) -> dict[str, str]:
    """Return the attributes that all nodes have."""
    return {
        "fontname": FONT,
        "fontsize": "11",
        "fontcolor": style.ink,
        "height": "0.3",
        "width": "0.6",
        "margin": "0.11,0.05",
        "penwidth": "0.9",
    }


def tag_attributes(edge: Edge, style: Style) -> dict[str, str]:
    """Return the look of the small node that carries the label of an edge."""
    bare = {"shape": "box", "style": "filled", "fillcolor": style.paper}
    if edge.kind == "copy":
        return bare | {"color": style.ink, "penwidth": "0.8", "margin": "0.06,0.02", "height": "0.1"}
    return bare | {"color": style.paper, "margin": "0.03,0", "height": "0.1"}


def write_tag(edge: Edge, style: Style, way: Way = "down") -> str:
    """Return the label of an edge, in lines; where it is drawn both ways, each line has an arrow of its own.

    `way` is where the target lies, seen from the source. All arrows are as wide as each other.
    """
    if not edge.back:
        return label([small(text(part, SUBLABEL_LIMIT), style.ink) for part in edge.label.split(" · ")])
    lines = zip(_ARROWS[way], (edge.label, edge.back), strict=True)
    return label(
        [small(f"{arrow} {text(_join_line(what), SUBLABEL_LIMIT)}", style.ink) for arrow, what in lines], "left"
    )


def _join_line(what: str) -> str:
    return what.replace(" · ", ", ")


def describe_edges(figure: Figure) -> list[str]:
    """Return what is shown when each edge is hovered: its ends, what its line means, what travels."""
    titles = {group.id: group.title for group in figure.groups}
    labels = {node.id: node.label for node in figure.nodes}
    homes = {node.id: titles.get(node.group or "", node.label) for node in figure.nodes}

    def describe(edge: Edge) -> str:
        one = (homes if edge.from_group else labels)[edge.source]
        other = (homes if edge.to_group else labels)[edge.target]
        meaning, many = EDGE_MARKS[edge.kind].meaning, f"{edge.count} tensors" if edge.count > 1 else ""
        if edge.back:
            ways = f"{one} → {other}: {_join_line(edge.label)}; {other} → {one}: {_join_line(edge.back)}"
            return hover(meaning, ways)
        return hover(f"{one} → {other}", meaning, edge.label, many)

    return [describe(edge) for edge in figure.edges]


def add_node(
    graph: graphviz.Digraph,
    name: str,
    node: Node,
    found: DeviceLook,
    style: Style,
    more_attributes: dict[str, str],
    badge: str,
) -> None:
    """Add a node to a graph; `more_attributes` are those of its size or place."""
    first, *more = _node_lines(node, style)
    graph.node(
        name,
        label=label([f"{badge} {first}" if badge else first, *more]),
        tooltip=hover(node.label, node.tooltip),
        **(node_attributes(node, found, style) | more_attributes),
    )


def write_badge(group: Group, style: Style) -> str:
    """Return the badge of a device, in its colour."""
    return small(bold(text(group.badge)), look(group, style).line, 8)


def _node_lines(node: Node, style: Style) -> list[str]:
    lines = [text(count_rest(node.label, LABEL_LIMIT))]
    if not style.enlarges and (node.kind == "scope" or (node.kind == "part" and node.count > 1)):
        lines[0] += small(f" ({node.count})", style.faint_ink, 10)
    if node.sublabel:
        said = small(text(node.sublabel, SUBLABEL_LIMIT), style.faint_ink)
        lines = [f"{lines[0]}  {said}"] if node.kind == "collective" else [*lines, said]
    if node.host_memory:
        lines.append(small("host memory", style.faint_ink))
    if node.requested:
        lines.append(small(bold(f"requested {text(node.requested)}"), style.warning_ink))
    if node.changed:
        lines.append(small(bold(text(node.changed)), style.ink))
    return lines


def cluster_attributes(group: Group, style: Style) -> dict[str, str]:
    """Return the title and the look of a device."""
    found = look(group, style)
    lines = [bold(text(group.title)) + (f"  {write_badge(group, style)}" if group.badge else "")]
    said = small(text(group.subtitle, SUBTITLE_LIMIT), style.faint_ink) if group.subtitle else ""
    if said and style.enlarges and len(group.title + group.badge + group.subtitle) <= _TITLE_LETTERS:
        lines[0] += f"  {said}"
    elif said:
        lines.append(said)
    return {
        "label": label(lines, "left"),
        "labeljust": "l",
        "tooltip": hover(group.title, group.subtitle),
        "style": ",".join(filter(None, ("filled", found.corner, found.border))),
        "fillcolor": found.backdrop,
        "color": found.line,
        "penwidth": f"{found.width:g}",
        "margin": "16",
    }


def frame_attributes(title: str, style: Style) -> dict[str, str]:
    """Return the title and the look of the box around the devices that belong together."""
    return {
        "label": label([bold(text(title))], "left"),
        "labeljust": "l",
        "tooltip": hover(title),
        "style": "filled",
        "fillcolor": style.paper,
        "color": style.faint_ink,
        "penwidth": "1.2",
        "margin": "10",
    }


def edge_attributes(edge: Edge, style: Style, hovered: str) -> dict[str, str]:
    """Return the look of the line of an edge."""
    mark = EDGE_MARKS[edge.kind]
    both = {"dir": "both", "arrowtail": mark.arrow} if edge.kind == "collective" or edge.back else {}
    return {
        "style": mark.style,
        "color": mark.colour(style),
        "arrowhead": mark.arrow,
        "penwidth": f"{line_width(edge):g}",
        "tooltip": hovered,
        **both,
    }


def halve_line(attributes: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the looks of a line up to its label and from there on, each with the heads at its own end."""
    rest = {key: value for key, value in attributes.items() if key not in ("dir", "arrowtail")}
    tail = {"dir": "both", "arrowtail": attributes["arrowtail"]} if "arrowtail" in attributes else {}
    return rest | {"arrowhead": "none"} | tail, rest
