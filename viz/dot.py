"""Write a figure as DOT text: a cluster per device, marks that do without colour, a legend of the marks used."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import graphviz

from viz.dot_pieces import (
    FONT,
    add_node,
    cluster_attributes,
    describe_edges,
    edge_attributes,
    frame_attributes,
    halve_line,
    name_clusters,
    name_nodes,
    node_defaults,
    tag_attributes,
    write_badge,
    write_tag,
)
from viz.figure import Edge, Figure, Group
from viz.heading import write_heading
from viz.labels import enlarge_small, label, small
from viz.legend import legend
from viz.legend_cluster import add_legend
from viz.palette import look, no_device
from viz.shape import direction, estimate_size
from viz.style import SCREEN, Style


def to_dot(figure: Figure, style: Style = SCREEN) -> str:
    """Write `figure` as DOT; the same figure and style give the same text.

    Ids of letters, digits and "_./-" name their nodes; other ids are replaced by "node 1", "node 2" ... in order,
    for a DOT name cannot hold them safely. Labels are shortened, the full text is in the tooltip.

    >>> from viz.figure import Node
    >>> print(to_dot(Figure(nodes=(Node("a", "a"),), legend=False)).splitlines()[0])
    digraph {
    """
    graph = graphviz.Digraph(
        graph_attr=_graph_attributes(figure, style), node_attr=node_defaults(style), edge_attr=_EDGE_DEFAULTS
    )
    names = name_nodes(figure)
    tags = _tags(figure)
    for place, frame in enumerate(dict.fromkeys(group.frame for group in figure.groups), start=1):
        around = _frame(frame, place, style) if frame else graph
        for group in figure.groups:
            if group.frame == frame:
                around.subgraph(_surroundings(figure, group, names, tags, style))
        if frame:
            graph.subgraph(around)
    _add_members(graph, figure, None, names, tags, style)
    if not figure.nodes and not figure.groups:  # Graphviz would leave the heading out
        graph.node("nothing", label=label([small("nothing to draw", style.faint_ink)]), shape="plain")
    clusters = name_clusters(figure)
    homes = {node.id: f"cluster {clusters[node.group]}" for node in figure.nodes if node.group is not None}
    for place, (edge, hovered) in enumerate(zip(figure.edges, describe_edges(figure), strict=True)):
        _add_edge(graph, edge, names, homes, hovered, tags.get(place), style)
    samples = legend(figure, is_brief=style.enlarges) if figure.legend else ()
    if samples:
        add_legend(graph, figure, samples, names, style)
    return enlarge_small(str(graph.source), style.smallest)


_EDGE_DEFAULTS = {"arrowsize": "0.7"}
_BAR = 0.6  # of the estimated extent of a figure: the length of the bar of a collective
_TAG_WEIGHT = "4"  # keeps the half of an edge straight that joins its tag to the device beside it


@dataclass(frozen=True, slots=True)
class _Tag:
    name: str
    edge: Edge
    hover: str
    group: str | None
    inside: bool
    at_target: bool


def _graph_attributes(figure: Figure, style: Style) -> dict[str, str]:
    attributes = {
        "rankdir": "LR" if direction(figure, style) == "right" else "TB",
        "fontname": FONT,
        "fontsize": "11",
        "bgcolor": style.paper,
        "pad": f"{style.pad / 72:g}",
        "nodesep": "0.22",
        "ranksep": "0.3",
        "outputorder": "edgesfirst",
        "newrank": "true",
    }
    if any(edge.from_group or edge.to_group for edge in figure.edges):
        attributes["compound"] = "true"
    if style is not SCREEN:
        attributes |= {"fontcolor": style.ink}
    lines = write_heading(figure, style)
    if lines:
        attributes |= {"label": label(lines, "left"), "labelloc": "t", "labeljust": "l"}
    return attributes


def _tags(figure: Figure) -> dict[int, _Tag]:
    """Add to each labelled edge, by its place, a small node that carries the label.

    Graphviz keeps nodes apart; labels of edges it lets collide with each other and with clusters. A tag stays beside
    the end whose device takes part in fewer transfers, so that tags do not crowd a device that feeds all others.
    """
    home = {node.id: node.group for node in figure.nodes}
    hovered = describe_edges(figure)
    crossing = Counter(
        home[end]
        for edge in figure.edges
        for end in (edge.source, edge.target)
        if home[edge.source] != home[edge.target]
    )

    def tag(place: int, edge: Edge) -> _Tag:
        ends = (home[edge.target], home[edge.source])
        beside = min(ends, key=lambda group: crossing[group])  # the target where both ends cross as often
        return _Tag(f"edge {place + 1}", edge, hovered[place], beside, ends[0] == ends[1], beside == ends[0])

    return {place: tag(place, edge) for place, edge in enumerate(figure.edges) if edge.label}


def _frame(title: str, place: int, style: Style) -> graphviz.Digraph:
    """Begin the box around the devices that belong together."""
    frame = graphviz.Digraph(name=f"cluster frame {place}")
    frame.attr(**frame_attributes(title, style))
    return frame


def _surroundings(
    figure: Figure, group: Group, names: dict[str, str], tags: dict[int, _Tag], style: Style
) -> graphviz.Digraph:
    """Draw a device with the tags beside it, held there by a cluster that is not seen."""
    around = graphviz.Digraph(name=f"cluster around {name_clusters(figure)[group.id]}")
    around.attr(style="invis", margin="3", label="")
    around.subgraph(_cluster(figure, group, names, tags, style))
    _add_tags(around, [tag for tag in tags.values() if tag.group == group.id and not tag.inside], figure, style)
    return around


def _cluster(
    figure: Figure, group: Group, names: dict[str, str], tags: dict[int, _Tag], style: Style
) -> graphviz.Digraph:
    cluster = graphviz.Digraph(name=f"cluster {name_clusters(figure)[group.id]}")
    cluster.attr(**cluster_attributes(group, style))
    _add_members(cluster, figure, group, names, tags, style)
    if not any(node.group == group.id for node in figure.nodes):  # Graphviz would leave the cluster out
        cluster.node(
            f"empty {name_clusters(figure)[group.id]}",
            label=label([small("empty", style.faint_ink)]),
            shape="plain",
        )
    return cluster


def _add_members(
    graph: graphviz.Digraph,
    figure: Figure,
    group: Group | None,
    names: dict[str, str],
    tags: dict[int, _Tag],
    style: Style,
) -> None:
    home = group.id if group else None
    found = look(group, style) if group else no_device(style)
    for node in figure.nodes:
        if node.group == home:
            bar = _measure_bar(figure, style) if node.kind == "collective" else {}
            badge = write_badge(group, style) if group and group.badge and node.kind != "copy" else ""
            add_node(graph, names[node.id], node, found, style, bar, badge)
    own = [tag for tag in tags.values() if tag.group == home and (tag.inside or home is None)]
    _add_tags(graph, own, figure, style)


def _add_tags(graph: graphviz.Digraph, tags: list[_Tag], figure: Figure, style: Style) -> None:
    way = direction(figure, style)
    for tag in tags:
        graph.node(
            tag.name, label=write_tag(tag.edge, style, way), tooltip=tag.hover, **tag_attributes(tag.edge, style)
        )


def _measure_bar(figure: Figure, style: Style) -> dict[str, str]:
    """Return the size of a bar beside all devices, by the estimate of the figure's size."""
    size = estimate_size(figure, style)
    side, other = ("height", size[1]) if direction(figure, style) == "right" else ("width", size[0])
    return {side: f"{_BAR * other / 72:.2f}"}


def _add_edge(
    graph: graphviz.Digraph,
    edge: Edge,
    names: dict[str, str],
    homes: dict[str, str],
    hovered: str,
    tag: _Tag | None,
    style: Style,
) -> None:
    source, target = names[edge.source], names[edge.target]
    attributes = edge_attributes(edge, style, hovered)
    leaves = {"ltail": homes[edge.source]} if edge.from_group and edge.source in homes else {}
    enters = {"lhead": homes[edge.target]} if edge.to_group and edge.target in homes else {}
    if tag is None:
        graph.edge(source, target, **(attributes | leaves | enters))
        return
    first, last = ("1", _TAG_WEIGHT) if tag.at_target else (_TAG_WEIGHT, "1")
    before, after = halve_line(attributes)
    graph.edge(source, tag.name, **(before | leaves | {"weight": first}))
    graph.edge(tag.name, target, **(after | enters | {"weight": last}))
