"""Measure what a figure is made of, in one run of Graphviz: nodes, titles, tags, possible headings, legend."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from viz.dot import to_dot
from viz.dot_pieces import name_clusters, name_nodes
from viz.engine import run_graphviz
from viz.figure import Figure, Node
from viz.heading import write_heading
from viz.labels import enlarge_small, label, small
from viz.packing.grid import snap
from viz.packing.parts import NOWHERE, Device, Parts, Wire
from viz.style import Style

NO_DEVICE = "on no device"  # the title of what is around nodes without a group
_INCH = 72
_LEGEND_TITLE = 14.0  # points
_WIDTHS = range(180, 1441, 60)  # points: headings are measured that are to fit these

PointSize = tuple[float, float]


@dataclass(frozen=True, slots=True)
class MeasuredParts:
    """Record of the parts of a figure in units; headings and samples of the legend with their sizes in points.

    Headings are the widest, and so the lowest, first. `legend_title` is the height of what stands above a legend.
    """

    parts: Parts
    headings: tuple[tuple[tuple[str, ...], PointSize], ...]
    samples: tuple[PointSize, ...]
    legend_title: float


def measure_parts(figure: Figure, style: Style, timeout_s: float) -> MeasuredParts:
    """Return the sizes of all parts of a figure; raise `LayoutError` as `run_graphviz` does."""
    figure = replace(figure, direction="down")
    headings = list(dict.fromkeys(tuple(write_heading(figure, style, width)) for width in reversed(_WIDTHS)))
    dot = to_dot(figure, style)
    end = dot.rindex("}")
    extra = f'"no device" [shape=plain, label={label([small(NO_DEVICE, style.faint_ink)], "left")}]\n'
    extra += "".join(f'"heading {i}" [shape=plain, label={label(lines, "left")}]\n' for i, lines in enumerate(headings))
    text = (dot[:end] + enlarge_small(extra, style.smallest) + dot[end:]).replace("graph [", "graph [layout=osage, ", 1)
    objects = {one["name"]: one for one in json.loads(run_graphviz(text, "json", _INCH, timeout_s))["objects"]}
    clusters, nodes = name_clusters(figure), name_nodes(figure)
    sizes = {node.id: _measure(objects[nodes[node.id]]) for node in figure.nodes}
    devices = tuple(
        Device(
            group.id,
            snap(*_measure(objects[f"cluster {clusters[group.id]}"], "lwidth", "lheight"), even=False),
            {node.id: snap(*sizes[node.id]) for node in figure.nodes if node.group == group.id},
            group.frame,
        )
        for group in figure.groups
    )
    frames = {
        frame: snap(*_measure(objects[f"cluster frame {place}"], "lwidth", "lheight"), even=False)
        for place, frame in enumerate(dict.fromkeys(group.frame for group in figure.groups), start=1)
        if frame
    }
    wires = tuple(
        Wire(
            edge.source,
            edge.target,
            snap(*_measure(objects[f"edge {place}"])) if edge.label else None,
            edge.from_group,
            edge.to_group,
        )
        for place, edge in enumerate(figure.edges, start=1)
    )
    bars = {node.id: snap(*sizes[node.id]) for node in figure.nodes if node.group is None and _is_bar(node)}
    loose = {node.id: snap(*sizes[node.id]) for node in figure.nodes if node.group is None and not _is_bar(node)}
    if loose:
        devices += (Device(NOWHERE, snap(*_measure(objects["no device"]), even=False), loose),)
    measured = tuple((lines, _measure(objects[f"heading {i}"]) if lines else (0.0, 0.0))
                     for i, lines in enumerate(headings))  # fmt: skip
    legend_title = 0.0 if style.widths else _LEGEND_TITLE  # a page has no room for what is seen without it
    return MeasuredParts(Parts(devices, wires, bars, frames), measured, tuple(_list_samples(objects)), legend_title)


def _is_bar(node: Node) -> bool:
    return node.kind == "collective"


def _list_samples(objects: dict[str, Any]) -> Iterable[PointSize]:
    place = 1
    while f"legend {place}" in objects:
        yield _measure(objects[f"legend {place}"])
        place += 1


def _measure(one: dict[str, Any], width: str = "width", height: str = "height") -> PointSize:
    return float(one[width]) * _INCH, float(one[height]) * _INCH
