"""Write a figure as DOT text: a cluster per device, marks that do without colour, a legend of the marks used."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

import graphviz

from viz.figure import Edge, Figure, Group, Node
from viz.labels import SUBLABEL_LIMIT, bold, hover, label, small, text
from viz.legend import legend
from viz.legend_cluster import add_legend
from viz.marks import EDGE_MARKS, line_width, node_attributes
from viz.palette import FAINT_INK, INK, NO_DEVICE, PAPER, WARNING_INK, DeviceLook, look
from viz.shape import direction

_FONT = "DejaVu Sans"
_PLAIN_ID = re.compile(r"[A-Za-z0-9_./\-]{1,200}\Z")
_PLAIN_GROUP_ID = re.compile(r"[A-Za-z0-9_./:\-]{1,200}\Z")
_TITLE_LIMIT, _CAPTION_LIMIT = 90, 120


def to_dot(figure: Figure) -> str:
    """Write `figure` as DOT; the same figure gives the same text.

    Ids of letters, digits and "_./-" name their nodes; other ids are replaced by "node 1", "node 2" ... in order,
    for a DOT name cannot hold them safely. Labels are shortened, the full text is in the tooltip.

    >>> print(to_dot(Figure(nodes=(Node("a", "a"),), legend=False)).splitlines()[0])
    digraph {
    """
    graph = graphviz.Digraph(graph_attr=_graph_attributes(figure), node_attr=_NODE_DEFAULTS, edge_attr=_EDGE_DEFAULTS)
    names = _names(figure)
    tags = _tags(figure)
    for group in figure.groups:
        graph.subgraph(_surroundings(figure, group, names, tags))
    _add_members(graph, figure, None, names, tags)
    words = {node.id: node.label for node in figure.nodes}
    for place, edge in enumerate(figure.edges):
        _add_edge(graph, edge, names, _edge_hover(edge, words), tags.get(place))
    samples = legend(figure) if figure.legend else ()
    if samples:
        add_legend(graph, figure, samples, names)
    return str(graph.source)


_NODE_DEFAULTS = {
    "fontname": _FONT,
    "fontsize": "11",
    "fontcolor": INK,
    "height": "0.3",
    "width": "0.6",
    "margin": "0.11,0.05",
    "penwidth": "0.9",
}
_EDGE_DEFAULTS = {"arrowsize": "0.7"}
_TAG_WEIGHT = "4"  # keeps the half of an edge straight that joins its tag to the device beside it
_BARE_TAG = {"shape": "box", "style": "filled", "color": PAPER, "fillcolor": PAPER, "margin": "0.03,0", "height": "0.1"}
_TAG_STYLES = {
    "data": _BARE_TAG,
    "control": _BARE_TAG,
    "copy": _BARE_TAG | {"color": INK, "penwidth": "0.8", "margin": "0.06,0.02"},
}


@dataclass(frozen=True, slots=True)
class _Tag:
    name: str
    edge: Edge
    hover: str
    group: str | None
    inside: bool
    at_target: bool


def _graph_attributes(figure: Figure) -> dict[str, str]:
    attributes = {
        "rankdir": "LR" if direction(figure) == "right" else "TB",
        "fontname": _FONT,
        "fontsize": "11",
        "bgcolor": PAPER,
        "pad": "0.15",
        "nodesep": "0.22",
        "ranksep": "0.3",
        "outputorder": "edgesfirst",
        "newrank": "true",
    }
    lines = _heading(figure)
    if lines:
        attributes |= {"label": label(lines, "left"), "labelloc": "t", "labeljust": "l"}
    return attributes


def _heading(figure: Figure) -> list[str]:
    lines = []
    if figure.title:
        lines.append(f'<font point-size="15">{bold(text(figure.title, _TITLE_LIMIT))}</font>')
    if figure.caption:
        lines += [small(text(line, _CAPTION_LIMIT), FAINT_INK, 10) for line in _wrapped(figure.caption)]
    return lines


def _wrapped(caption: str) -> list[str]:
    """Break a caption at " · " into lines of at most `_CAPTION_LIMIT` characters where that is possible."""
    lines: list[str] = []
    for part in caption.split(" · "):
        if lines and len(lines[-1]) + len(part) + 3 <= _CAPTION_LIMIT:
            lines[-1] += f" · {part}"
        else:
            lines.append(part)
    return lines


def _names(figure: Figure) -> dict[str, str]:
    return {
        node.id: node.id if _PLAIN_ID.match(node.id) else f"node {place}"
        for place, node in enumerate(figure.nodes, start=1)
    }


def _cluster_names(figure: Figure) -> dict[str, str]:
    return {
        group.id: group.id if _PLAIN_GROUP_ID.match(group.id) else f"device {place}"
        for place, group in enumerate(figure.groups, start=1)
    }


def _tags(figure: Figure) -> dict[int, _Tag]:
    """Give each labelled edge, by its place, a small node that carries the label.

    Graphviz keeps nodes apart; labels of edges it lets collide with each other and with clusters. A tag stays beside
    the end whose device takes part in fewer transfers, so that tags do not crowd a device that feeds all others.
    """
    home = {node.id: node.group for node in figure.nodes}
    words = {node.id: node.label for node in figure.nodes}
    crossing = Counter(
        home[end]
        for edge in figure.edges
        for end in (edge.source, edge.target)
        if home[edge.source] != home[edge.target]
    )

    def tag(place: int, edge: Edge) -> _Tag:
        ends = (home[edge.target], home[edge.source])
        beside = min(ends, key=lambda group: crossing[group])  # the target where both ends cross as often
        return _Tag(f"edge {place + 1}", edge, _edge_hover(edge, words), beside, ends[0] == ends[1], beside == ends[0])

    return {place: tag(place, edge) for place, edge in enumerate(figure.edges) if edge.label}


def _surroundings(figure: Figure, group: Group, names: dict[str, str], tags: dict[int, _Tag]) -> graphviz.Digraph:
    """Draw a device with the tags beside it, held there by a cluster that is not seen."""
    around = graphviz.Digraph(name=f"cluster around {_cluster_names(figure)[group.id]}")
    around.attr(style="invis", margin="3", label="")
    around.subgraph(_cluster(figure, group, names, tags))
    _add_tags(around, [tag for tag in tags.values() if tag.group == group.id and not tag.inside])
    return around


def _cluster(figure: Figure, group: Group, names: dict[str, str], tags: dict[int, _Tag]) -> graphviz.Digraph:
    style = look(group)
    cluster = graphviz.Digraph(name=f"cluster {_cluster_names(figure)[group.id]}")
    lines = [bold(text(group.title))]
    if group.subtitle:
        lines.append(small(text(group.subtitle, SUBLABEL_LIMIT), FAINT_INK))
    cluster.attr(
        label=label(lines, "left"),
        labeljust="l",
        tooltip=hover(group.title, group.subtitle),
        style=",".join(filter(None, ("filled", style.corner, style.border))),
        fillcolor=style.backdrop,
        color=style.line,
        penwidth=f"{style.width:g}",
        margin="16",
    )
    _add_members(cluster, figure, group, names, tags)
    if not any(node.group == group.id for node in figure.nodes):  # Graphviz would leave the cluster out
        cluster.node(
            f"empty {_cluster_names(figure)[group.id]}", label=label([small("empty", FAINT_INK)]), shape="plain"
        )
    return cluster


def _add_members(
    graph: graphviz.Digraph, figure: Figure, group: Group | None, names: dict[str, str], tags: dict[int, _Tag]
) -> None:
    home = group.id if group else None
    style = look(group) if group else NO_DEVICE
    for node in figure.nodes:
        if node.group == home:
            _add_node(graph, names[node.id], node, style)
    _add_tags(graph, [tag for tag in tags.values() if tag.group == home and (tag.inside or home is None)])


def _add_tags(graph: graphviz.Digraph, tags: list[_Tag]) -> None:
    for tag in tags:
        graph.node(tag.name, label=_tag_label(tag.edge), tooltip=tag.hover, **_TAG_STYLES[tag.edge.kind])


def _tag_label(edge: Edge) -> str:
    return label([small(text(part, SUBLABEL_LIMIT), INK) for part in edge.label.split(" · ")])


def _edge_hover(edge: Edge, words: dict[str, str]) -> str:
    many = f"{edge.count} tensors" if edge.count > 1 else ""
    return hover(f"{words[edge.source]} → {words[edge.target]}", EDGE_MARKS[edge.kind].meaning, edge.label, many)


def _add_node(graph: graphviz.Digraph, name: str, node: Node, style: DeviceLook) -> None:
    graph.node(
        name,
        label=label(_node_lines(node)),
        tooltip=hover(node.label, node.tooltip),
        **node_attributes(node, style),
    )


def _node_lines(node: Node) -> list[str]:
    lines = [text(node.label)]
    if node.kind == "scope":
        lines[0] += small(f" ({node.count})", FAINT_INK, 10)
    if node.sublabel:
        lines.append(small(text(node.sublabel, SUBLABEL_LIMIT), FAINT_INK))
    if node.host_memory:
        lines.append(small("host memory", FAINT_INK))
    if node.asked:
        lines.append(small(bold(f"asked {text(node.asked)}"), WARNING_INK))
    return lines


def _add_edge(graph: graphviz.Digraph, edge: Edge, names: dict[str, str], hovered: str, tag: _Tag | None) -> None:
    mark = EDGE_MARKS[edge.kind]
    source, target = names[edge.source], names[edge.target]
    attributes = {
        "style": mark.style,
        "color": mark.colour,
        "arrowhead": mark.arrow,
        "penwidth": f"{line_width(edge):g}",
        "tooltip": hovered,
    }
    if tag is None:
        graph.edge(source, target, **attributes)
        return
    first, last = ("1", _TAG_WEIGHT) if tag.at_target else (_TAG_WEIGHT, "1")
    graph.edge(source, tag.name, **(attributes | {"arrowhead": "none", "weight": first}))
    graph.edge(tag.name, target, **(attributes | {"weight": last}))
