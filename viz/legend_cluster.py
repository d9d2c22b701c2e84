"""Write a legend as a cluster of a DOT graph, placed where it costs little space."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from types import MappingProxyType

import graphviz

from viz.figure import Figure, Group, Node
from viz.labels import SUBLABEL_LIMIT, hover, label, small, text
from viz.legend import Sample
from viz.marks import EDGE_MARKS, node_attributes
from viz.palette import look, no_device
from viz.shape import deepest, depths, direction, size_down
from viz.style import SCREEN, Style

_ROW_LETTERS, _SAMPLE_FRAME, _LETTER_WIDTH = 44, 5, 6.5  # a legend row: letters at least, a sample's border, points
_ANYWHERE: Mapping[str, str] = MappingProxyType({})
_STRIP_LEAST = 5  # samples in a row of a legend along the ranks


def add_legend(
    graph: graphviz.Digraph,
    figure: Figure,
    samples: tuple[Sample, ...],
    names: dict[str, str],
    style: Style = SCREEN,
) -> None:
    """Put the legend at the edge of the drawing, where it costs a strip at most.

    Where edges point down, an invisible edge of weight 0 holds it after the deepest node without a pull. Where they
    point right, its rows run along the ranks.
    """
    cluster = graphviz.Digraph(name="cluster of marks")
    cluster.attr(
        label=label([small("Legend", style.faint_ink)], "left"),
        labeljust="l",
        style="solid",
        color=style.frame,
        margin="8",
    )
    if direction(figure, style) == "right":
        _add_strip(graph, cluster, samples, figure, style)
        return
    rows = _rows(samples, figure)
    for row in rows:
        line = graphviz.Digraph()
        line.attr(rank="same")
        for name, sample in row:
            add_sample(line, name, sample, style)
        cluster.subgraph(line)
        for (one, _), (other, _) in pairwise(row):
            cluster.edge(one, other, style="invis", minlen="0")
    for upper, lower in pairwise(rows):
        cluster.edge(upper[0][0], lower[0][0], style="invis")
    graph.subgraph(cluster)
    graph.edge(names[deepest(figure).id], rows[0][0][0], style="invis", weight="0")


def _add_strip(
    graph: graphviz.Digraph, cluster: graphviz.Digraph, samples: tuple[Sample, ...], figure: Figure, style: Style
) -> None:
    """Chain the samples of each row along the ranks of the figure."""
    ranks = max(depths(figure).values()) + 1
    length = math.ceil(len(samples) / math.ceil(len(samples) / max(ranks, _STRIP_LEAST)))
    named = [(f"legend {place}", sample) for place, sample in enumerate(samples, start=1)]
    rows = [named[at : at + length] for at in range(0, len(named), length)]
    for row in reversed(rows):  # ranks are columns, filled from below
        for name, sample in row:
            add_sample(cluster, name, sample, style)
        for (one, _), (other, _) in pairwise(row):
            cluster.edge(one, other, style="invis", weight="0")
    graph.subgraph(cluster)


def _rows(samples: tuple[Sample, ...], figure: Figure) -> list[list[tuple[str, Sample]]]:
    """Break the samples into rows of about equal length, as wide as the figure."""
    named = [(f"legend {place}", sample) for place, sample in enumerate(samples, start=1)]
    lengths = [len(sample.meaning) + _SAMPLE_FRAME for sample in samples]
    count = math.ceil(sum(lengths) / max(_ROW_LETTERS, size_down(figure)[0] / _LETTER_WIDTH))
    rows: list[list[tuple[str, Sample]]] = [[] for _ in range(count)]
    before = 0
    for one, length in zip(named, lengths, strict=True):
        rows[min(int((before + length / 2) * count / sum(lengths)), count - 1)].append(one)
        before += length
    return [row for row in rows if row]


def add_sample(
    graph: graphviz.Digraph, name: str, sample: Sample, style: Style, place: Mapping[str, str] = _ANYWHERE
) -> None:
    """Add the sample of a mark to a graph, with the attributes that place it."""
    if sample.edge is not None:
        graph.node(name, label=_line_sample(sample, style), shape="plain", **place)
        return
    found = look(Group("", "", kind=sample.device_kind), style) if sample.device_kind else no_device(style)
    node = Node(
        "",
        sample.meaning,
        kind=sample.node,
        requested="?" if sample.requested else "",
        host_memory=sample.host_memory,
        changed="?" if sample.changed else "",
    )
    attributes = node_attributes(node, found, style) | {"fillcolor": style.paper}
    if style.enlarges:
        attributes["margin"] = "0.06,0.02"
    if not sample.requested:
        attributes["color"] = style.ink if sample.changed else style.faint_ink
    colour = style.warning_ink if sample.requested else style.ink
    graph.node(
        name,
        label=label([small(text(sample.meaning, SUBLABEL_LIMIT), colour)]),
        tooltip=hover(sample.meaning),
        **attributes,
        **place,
    )


def _line_sample(sample: Sample, style: Style) -> str:
    """Draw a stretch of line as the lower border of a table cell, for an edge needs two nodes."""
    assert sample.edge is not None, "only lines get here"
    mark = EDGE_MARKS[sample.edge]
    border = round(sample.width)
    line = f'border="{border}" sides="b" style="{mark.style}" color="{mark.colour(style)}"'
    head = small("▶", mark.colour(style), 7) if mark.arrow != "none" else " "
    words = small(text(sample.meaning, len(sample.meaning)), style.ink)
    return (
        '<<table border="0" cellborder="0" cellspacing="0" cellpadding="0">'
        f'<tr><td width="26" height="1" fixedsize="true" {line}></td>'
        f'<td rowspan="2" cellpadding="2">{head}</td><td rowspan="2">{words}</td></tr>'
        "<tr><td></td></tr></table>>"
    )
