"""Write a packed figure as DOT that Graphviz draws as it stands: everything has its place."""

from __future__ import annotations

import math
from collections.abc import Sequence

import graphviz

from viz.dot_pieces import (
    FONT,
    Way,
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
from viz.figure import Edge, Figure
from viz.labels import enlarge_small, label, small
from viz.legend import legend
from viz.legend_cluster import add_sample
from viz.marks import line_width
from viz.packing.grid import UNIT, Point, Rect
from viz.packing.measured_parts import NO_DEVICE
from viz.packing.packed_page import Page
from viz.packing.parts import NOWHERE
from viz.palette import look, no_device
from viz.style import SCREEN, Style

_CORNER = 5.0  # points: the radius of a bend
_ARROW = 10.0  # points: the length of an arrowhead of size 1
_ROUND = ("argument", "result")
_HOUSE = ((-0.5, -0.155), (0.0, -0.5), (0.5, -0.155), (0.5, 0.404), (-0.5, 0.404))  # as Graphviz draws it: corners from
# the middle, in widths and heights, `y` downwards
_CORNERS = {"receive": _HOUSE, "send": tuple((x, -y) for x, y in _HOUSE)}

PointF = tuple[float, float]


def write_placed_dot(figure: Figure, style: Style, page: Page) -> str:
    """Return the DOT of a figure on its page; Graphviz counts `y` upwards."""
    return _Writer(figure, style, page).write()


class _Writer:
    def __init__(self, figure: Figure, style: Style, page: Page) -> None:
        self.figure, self.style, self.page = figure, style, page
        self.found = page.wiring.arrangement
        self.graph = graphviz.Digraph(
            graph_attr=self._graph_attributes(),
            node_attr={**node_defaults(style), "fixedsize": "true"},
            edge_attr={"arrowsize": "0.7"},
        )

    def write(self) -> str:
        self._add_clusters()
        self._add_nodes()
        self._add_edges()
        self._add_legend()
        return enlarge_small(str(self.graph.source), self.style.smallest)

    def _graph_attributes(self) -> dict[str, str]:
        page, style = self.page, self.style
        attributes = {
            "fontname": FONT, "fontsize": "11", "bgcolor": style.paper, "outputorder": "edgesfirst",
            "pad": f"{style.pad / 72:g}", "bb": f"0,0,{page.width:.2f},{page.height:.2f}",
        }  # fmt: skip
        if style is not SCREEN:
            attributes |= {"fontcolor": style.ink}
        if page.heading:
            wide, high = page.heading_size
            place = (0.0, 0.0, wide, high)
            attributes |= {"label": label(page.heading, "left"), "labeljust": "l", **self._label_place(place)}
        return attributes

    def _box(self, rect: Rect) -> tuple[float, float, float, float]:
        left, top = self.page.left, self.page.top
        return left + rect.left * UNIT, top + rect.top * UNIT, left + rect.right * UNIT, top + rect.bottom * UNIT

    def _point(self, x: float, y: float) -> str:
        return f"{x:.2f},{self.page.height - y:.2f}"

    def _label_place(self, box: tuple[float, float, float, float]) -> dict[str, str]:
        left, top, right, bottom = box
        return {
            "lp": self._point((left + right) / 2, (top + bottom) / 2),
            "lwidth": f"{(right - left) / 72:.4f}",
            "lheight": f"{(bottom - top) / 72:.4f}",
        }

    def _node_place(self, box: tuple[float, float, float, float]) -> dict[str, str]:
        left, top, right, bottom = box
        return {
            "pos": self._point((left + right) / 2, (top + bottom) / 2),
            "width": f"{(right - left) / 72:.4f}",
            "height": f"{(bottom - top) / 72:.4f}",
        }

    def _cluster_place(self, rect: Rect) -> dict[str, str]:
        left, top, right, bottom = self._box(rect)
        return {"bb": f"{self._point(left, bottom)},{self._point(right, top)}"}

    def _add_clusters(self) -> None:
        for place, (frame, rect) in enumerate(self.found.frames.items(), start=1):
            title = self._label_place(self._box(self.found.frame_titles[frame]))
            with self.graph.subgraph(name=f"cluster frame {place}") as cluster:
                cluster.attr(**frame_attributes(frame, self.style), **self._cluster_place(rect), **title)
        names = name_clusters(self.figure)
        for group in self.figure.groups:
            title = self._label_place(self._box(self.found.titles[group.id]))
            rect = self.found.devices[group.id]
            with self.graph.subgraph(name=f"cluster {names[group.id]}") as cluster:
                cluster.attr(**cluster_attributes(group, self.style), **self._cluster_place(rect), **title)
        if NOWHERE in self.found.devices:
            title = self._label_place(self._box(self.found.titles[NOWHERE]))
            with self.graph.subgraph(name="cluster of no device") as cluster:
                ink = self.style.faint_ink
                cluster.attr(
                    label=label([small(NO_DEVICE, ink)], "left"), style="dashed", color=ink,
                    **self._cluster_place(self.found.devices[NOWHERE]), **title,
                )  # fmt: skip

    def _add_nodes(self) -> None:
        groups = {group.id: group for group in self.figure.groups}
        names = name_nodes(self.figure)
        for node in self.figure.nodes:
            group = groups.get(node.group or "")
            found = look(group, self.style) if group else no_device(self.style)
            badge = write_badge(group, self.style) if group and group.badge and node.kind != "copy" else ""
            place = self._node_place(self._box(self.found.nodes[node.id]))
            add_node(self.graph, names[node.id], node, found, self.style, place, badge)

    def _add_edges(self) -> None:
        names = name_nodes(self.figure)
        for place, (edge, hovered) in enumerate(zip(self.figure.edges, describe_edges(self.figure), strict=True)):
            attributes = edge_attributes(edge, self.style, hovered)
            attributes["arrowsize"] = f"{_size_arrow(line_width(edge)):.2f}"
            if not edge.label:
                self._add_line(names[edge.source], names[edge.target], (place, 0), attributes)
                continue
            tag = f"edge {place + 1}"
            box = self._node_place(self._box(self.found.tags[place]))
            said = write_tag(edge, self.style, self._find_way(edge) if edge.back else "down")
            self.graph.node(tag, label=said, tooltip=hovered, **(tag_attributes(edge, self.style) | box))
            before, after = halve_line(attributes)
            self._add_line(names[edge.source], tag, (place, 0), before)
            self._add_line(tag, names[edge.target], (place, 1), after)

    def _find_way(self, edge: Edge) -> Way:
        """Return where the target of an edge lies, seen from its source: beside it only where it is in the same row."""
        one, other = (self._find_end(*end) for end in ((edge.source, edge.from_group), (edge.target, edge.to_group)))
        if one.bottom < other.top or other.bottom < one.top:
            return "down" if one.bottom < other.top else "up"
        return "right" if one.middle[0] <= other.middle[0] else "left"

    def _find_end(self, node: str, is_device: bool) -> Rect:
        home = next(one.group for one in self.figure.nodes if one.id == node)
        return self.found.devices[home] if is_device and home is not None else self.found.nodes[node]

    def _add_line(self, source: str, target: str, key: tuple[int, int], attributes: dict[str, str]) -> None:
        """Add a line along its corners; a head takes the end of it."""
        size = _ARROW * float(attributes["arrowsize"])
        points = self._to_points(self.page.wiring.lines[key])
        ends = []
        if attributes.get("dir") == "both":
            ends.append(f"s,{self._point(*points[0])}")
            points[0] = _shorten(points[0], points[1], size)
        if attributes["arrowhead"] != "none":
            ends.append(f"e,{self._point(*points[-1])}")
            points[-1] = _shorten(points[-1], points[-2], size)
        knots = " ".join(self._point(x, y) for x, y in bend_corners(points))
        self.graph.edge(source, target, **attributes, pos=" ".join([*ends, knots]))

    def _to_points(self, path: Sequence[Point]) -> list[PointF]:
        """Return the corners in points; at a node that is no box the ends are at its outline, not the box around it."""
        points = [(self.page.left + x * UNIT, self.page.top + y * UNIT) for x, y in path]
        for end, beside in ((0, 1), (-1, -2)):
            for node in self.figure.nodes:
                rect = self.found.nodes[node.id]
                if node.kind in _ROUND and rect.holds(path[end]):
                    points[end] = _pull_in(points[end], points[beside], self._box(rect))
                elif node.kind in _CORNERS and rect.holds(path[end]):
                    points[end] = meet_outline(points[end], points[beside], self._box(rect), _CORNERS[node.kind])
        return points

    def _add_legend(self) -> None:
        samples = legend(self.figure, is_brief=self.style.enlarges) if self.figure.legend else ()
        if not samples:
            return
        left, top, right, bottom = self.page.legend
        with self.graph.subgraph(name="cluster of marks") as cluster:
            title = {
                "label": label([small("Legend", self.style.faint_ink)], "left"),
                **self._label_place((left + 6, top + 4, left + 44, top + 18)),
            }
            cluster.attr(
                style="solid", color=self.style.frame, bb=f"{self._point(left, bottom)},{self._point(right, top)}",
                **({} if self.style.widths else title),
            )  # fmt: skip
        for i, (sample, (x, y)) in enumerate(zip(samples, self.page.samples, strict=True), start=1):
            add_sample(self.graph, f"legend {i}", sample, self.style, {"pos": self._point(x, y), "fixedsize": "false"})


def _size_arrow(width: float) -> float:
    """Return the size of the head of a line of a width in points: a thick line needs a larger one to be seen."""
    return 0.7 + 0.1 * max(width - 1.0, 0.0)


def _shorten(end: PointF, beside: PointF, by: float) -> PointF:
    length = math.dist(end, beside)
    share = min(by / length, 0.9) if length else 0.0
    return end[0] + (beside[0] - end[0]) * share, end[1] + (beside[1] - end[1]) * share


def _pull_in(end: PointF, beside: PointF, box: tuple[float, float, float, float]) -> PointF:
    """Return where a line that ends at the box around an ellipse meets the ellipse."""
    x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    a, b = (box[2] - box[0]) / 2, (box[3] - box[1]) / 2
    if end[0] == beside[0]:
        reach = b * math.sqrt(max(1 - ((end[0] - x) / a) ** 2, 0))
        return end[0], y + math.copysign(reach, end[1] - y)
    reach = a * math.sqrt(max(1 - ((end[1] - y) / b) ** 2, 0))
    return x + math.copysign(reach, end[0] - x), end[1]


def meet_outline(
    end: PointF, beside: PointF, box: tuple[float, float, float, float], corners: Sequence[PointF]
) -> PointF:
    """Return where a line that ends at the box around a polygon meets the polygon; its end if it passes by.

    >>> meet_outline((5, 0), (5, -9), (0, 0, 20, 10), [(-0.5, 0), (0, -0.5), (0.5, 0)])
    (5, 2.5)
    """
    x, y, wide, high = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2, box[2] - box[0], box[3] - box[1]
    outline = [(x + across * wide, y + down * high) for across, down in corners]
    is_upright = end[0] == beside[0]
    fixed, along = (0, 1) if is_upright else (1, 0)
    met = []
    for one, other in zip(outline, [*outline[1:], outline[0]], strict=True):
        low, high = sorted((one[fixed], other[fixed]))
        if low <= end[fixed] <= high and low < high:
            share = (end[fixed] - one[fixed]) / (other[fixed] - one[fixed])
            met.append(one[along] + share * (other[along] - one[along]))
    if not met:
        return end
    nearest = min(met, key=lambda at: abs(at - end[along]))
    return (end[0], nearest) if is_upright else (nearest, end[1])


def bend_corners(points: Sequence[PointF], radius: float = _CORNER) -> list[PointF]:
    """Return the control points of a curve (pieces of three, after the first) along corners that are rounded.

    >>> bend_corners([(0, 0), (9, 0)])
    [(0, 0), (3.0, 0.0), (6.0, 0.0), (9, 0)]
    """
    knots = [points[0]]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        near = _shorten(corner, before, min(radius, math.dist(before, corner) / 2))
        far = _shorten(corner, after, min(radius, math.dist(after, corner) / 2))
        knots += [
            *_straight(knots[-1], near),
            _shorten(near, corner, 0.6 * radius),
            _shorten(far, corner, 0.6 * radius),
            far,
        ]
    return knots + _straight(knots[-1], points[-1])


def _straight(start: PointF, end: PointF) -> list[PointF]:
    thirds = [(start[0] + (end[0] - start[0]) * k / 3, start[1] + (end[1] - start[1]) * k / 3) for k in (1, 2)]
    return [*thirds, end]
