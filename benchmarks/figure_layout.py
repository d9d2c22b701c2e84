"""Measure the layout of a figure: what lines run through, what overlaps, how much of the page is empty."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from viz import Figure, Style
from viz.dot_pieces import name_clusters
from viz.engine import run_graphviz
from viz.laid_out import finished
from viz.layout import lay_out
from viz.style import SCREEN

_GRID = 200  # cells of the page along each side
_STEPS = 12  # points of a piece of a curve
_TOUCH = 2.0  # points: so deep a line may go into a box that it passes, and a box into another
_INCH = 72

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Box:
    """Describe a rectangle of a drawing, in points: a node, a label, a title or a device."""

    name: str
    left: float
    low: float
    right: float
    top: float

    def overlaps(self, other: Box) -> bool:
        """Return whether two boxes share more than an edge."""
        wide = min(self.right, other.right) - max(self.left, other.left)
        high = min(self.top, other.top) - max(self.low, other.low)
        return min(wide, high) > _TOUCH

    def holds(self, point: Point) -> bool:
        """Return whether a point is inside, not just at the rim."""
        x, y = point
        return self.left + _TOUCH < x < self.right - _TOUCH and self.low + _TOUCH < y < self.top - _TOUCH


@dataclass(frozen=True, slots=True)
class Layout:
    """Record of the measures: lines through boxes and labels, lines through titles, overlaps, and the empty share.

    Empty is what no node, label, title, device or legend covers, of the whole page with its margin. `text` is the size
    of the smallest text in points as printed. `is_in_order` is whether devices stand in their order, row by row.
    """

    through_boxes: int
    through_titles: int
    overlaps: int
    empty: float
    text: float
    is_in_order: bool


def measure_layout(figure: Figure, style: Style = SCREEN) -> Layout:
    """Return the measures of a figure as Graphviz lays it out; titles are drawn above the lines that cross them."""
    laid = json.loads(run_graphviz(finished(lay_out(figure, style), style, titles=False), "json", _INCH, 60))
    objects = laid.get("objects", [])
    nodes = {one["_gvid"]: _node_box(one) for one in objects if _is_node(one)}
    clusters = [one for one in objects if "bb" in one and one.get("style") != "invis"]
    titles = [box for one in clusters if (box := _title_box(one)) is not None]
    lines = [edge for edge in laid.get("edges", []) if "pos" in edge and edge.get("style") != "invis"]
    traced = [(edge, _trace_line(edge["pos"])) for edge in lines]
    through = sum(
        any(map(box.holds, points))
        for edge, points in traced
        for number, box in nodes.items()
        if number not in (edge["tail"], edge["head"])
    )
    crossed = sum(any(map(title.holds, points)) for _, points in traced for title in titles)
    placed = [*nodes.values(), *titles]
    overlaps = sum(one.overlaps(other) for one, other in combinations(placed, 2))
    by_name = {one["name"]: _cluster_box(one) for one in clusters}
    in_order = _is_in_order([by_name[f"cluster {name}"] for name in name_clusters(figure).values()])
    filled = [*nodes.values(), *(_cluster_box(one) for one in clusters), *_heading_box(laid)]
    return Layout(through, crossed, overlaps, _measure_empty(_find_page(laid), filled), _find_smallest(laid), in_order)


def measure_chart(dot: str) -> Layout:
    """Return the size of the smallest text of a chart; its bars and labels have no lines, and stand where time says."""
    laid = json.loads(run_graphviz(dot, "json", _INCH, 60))
    return Layout(0, 0, 0, 0.0, _find_smallest(laid), True)


def _is_in_order(devices: Sequence[Box]) -> bool:
    """Return whether each device is right of those before it that stand in its row, and not above any."""
    return all(
        other.top <= one.low or (other.left >= one.right and other.top > one.low and other.low < one.top)
        for one, other in combinations(devices, 2)
    )


def _find_page(laid: dict[str, Any]) -> Box:
    """Return the sheet that Graphviz draws on: the drawing with its margin, or the page of the style."""
    sheet = next(one["points"] for one in laid["_draw_"] if one["op"] == "P")
    xs, ys = zip(*sheet, strict=True)
    return Box("page", min(xs), min(ys), max(xs), max(ys))


def _find_smallest(laid: dict[str, Any]) -> float:
    scale = float(laid["viewport"].split(",")[2]) if "viewport" in laid else 1.0
    drawn = [laid, *laid.get("objects", []), *laid.get("edges", [])]
    sizes = [mark["size"] for one in drawn for mark in one.get("_ldraw_", []) if mark["op"] == "F"]
    return scale * min(sizes, default=0.0)


def _is_node(one: dict[str, Any]) -> bool:
    return "pos" in one and "width" in one and one.get("style") != "invis"


def _node_box(one: dict[str, Any]) -> Box:
    x, y = map(float, one["pos"].split(","))
    return _centred(one["name"], x, y, float(one["width"]) * _INCH, float(one["height"]) * _INCH)


def _title_box(one: dict[str, Any]) -> Box | None:
    if "lp" not in one:
        return None
    x, y = map(float, one["lp"].split(","))
    return _centred(f"title of {one['name']}", x, y, float(one["lwidth"]) * _INCH, float(one["lheight"]) * _INCH)


def _cluster_box(one: dict[str, Any]) -> Box:
    return _parse_box(one["name"], one["bb"])


def _heading_box(laid: dict[str, Any]) -> Iterable[Box]:
    return [box] if (box := _title_box({"name": "page", **laid} if "lp" in laid else {})) is not None else []


def _centred(name: str, x: float, y: float, width: float, height: float) -> Box:
    return Box(name, x - width / 2, y - height / 2, x + width / 2, y + height / 2)


def _parse_box(name: str, corners: str) -> Box:
    return Box(name, *map(float, corners.split(",")))


def _trace_line(pos: str) -> list[Point]:
    """Return points along a spline, as Graphviz writes it: "e,x,y s,x,y x,y x,y ...", pieces of four points each."""
    knots = [_parse_point(part) for part in pos.replace("\\\n", "").split() if part[0] not in "es"]
    found = []
    for at in range(0, len(knots) - 3, 3):
        found += [_bend(knots[at : at + 4], step / _STEPS) for step in range(_STEPS + 1)]
    return found


def _parse_point(text: str) -> Point:
    x, y = text.split(",")
    return float(x), float(y)


def _bend(knots: Sequence[Point], at: float) -> Point:
    shares = ((1 - at) ** 3, 3 * at * (1 - at) ** 2, 3 * at * at * (1 - at), at**3)
    x, y = (sum(share * knot[i] for share, knot in zip(shares, knots, strict=True)) for i in (0, 1))
    return x, y


def _measure_empty(page: Box, filled: Sequence[Box]) -> float:
    """Return the share of a grid over the page whose cells no box covers."""
    wide, high = (page.right - page.left) / _GRID, (page.top - page.low) / _GRID
    covered = bytearray(_GRID * _GRID)
    for box in filled:
        first, last = max(round((box.left - page.left) / wide), 0), min(round((box.right - page.left) / wide), _GRID)
        for row in range(max(round((box.low - page.low) / high), 0), min(round((box.top - page.low) / high), _GRID)):
            covered[row * _GRID + first : row * _GRID + last] = b"\1" * max(last - first, 0)
    return 1 - sum(covered) / len(covered)
