"""Find which marks a figure uses, in a fixed order, for its legend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from viz.figure import EdgeKind, Figure, NodeKind
from viz.marks import (
    CHANGED_MEANING,
    COUNT_MEANING,
    EDGE_MARKS,
    HOST_MEMORY_MEANING,
    NODE_MARKS,
    REQUESTED_MEANING,
    SHARE_MEANING,
    VISIBLE,
    line_width,
)


@dataclass(frozen=True, slots=True)
class Sample:
    """Show one mark: a node drawn like those of the figure, or a stretch of line of an edge kind, `width` points."""

    meaning: str
    node: NodeKind = "op"
    device_kind: str = ""
    requested: bool = False
    changed: bool = False
    host_memory: bool = False
    edge: EdgeKind | None = None
    width: float = 0.0


# What a legend says where each line of it makes the drawing smaller.
_BRIEF = {
    NODE_MARKS["scope"].meaning: "scope",
    NODE_MARKS["part"].meaning: "part",
    EDGE_MARKS["copy"].meaning: "copy",
    EDGE_MARKS["collective"].meaning: "in a collective",
}


def legend(figure: Figure, *, is_brief: bool = False) -> tuple[Sample, ...]:
    """List a sample of each mark that occurs: nodes in the order of `NodeKind`, flags, then lines.

    >>> from viz.figure import Node
    >>> [sample.meaning for sample in legend(Figure(nodes=(Node("a", "a", host_memory=True),)))]
    ['op', 'in host memory']
    """
    words = _BRIEF if is_brief else {}
    return (*_ops(figure), *_other_nodes(figure, words), *_flags(figure), *_lines(figure, words))


def _ops(figure: Figure) -> list[Sample]:
    kinds = {group.id: group.kind for group in figure.groups}
    used = {kinds.get(node.group or "", "") for node in figure.nodes if node.kind == "op"}
    meaning = NODE_MARKS["op"].meaning
    ordered = dict.fromkeys([*kinds.values(), ""])
    return [Sample(f"{meaning} on {kind}" if kind else meaning, device_kind=kind) for kind in ordered if kind in used]


def _other_nodes(figure: Figure, words: Mapping[str, str]) -> list[Sample]:
    used = {node.kind for node in figure.nodes}
    return [
        Sample(words.get(mark.meaning, mark.meaning), kind)
        for kind, mark in NODE_MARKS.items()
        if kind in used and kind != "op"
    ]


def _flags(figure: Figure) -> list[Sample]:
    samples = []
    if any(node.requested for node in figure.nodes):
        samples.append(Sample(REQUESTED_MEANING, requested=True))
    if any(node.host_memory for node in figure.nodes):
        samples.append(Sample(HOST_MEMORY_MEANING, host_memory=True))
    if any(node.changed for node in figure.nodes):
        samples.append(Sample(CHANGED_MEANING, changed=True))
    return samples


def _lines(figure: Figure, words: Mapping[str, str]) -> list[Sample]:
    """Return a sample of each kind of line, as wide as its widest; what widths mean is said where they can be told."""
    samples = []
    counted: list[tuple[float, EdgeKind]] = []
    for kind, mark in EDGE_MARKS.items():
        edges = [edge for edge in figure.edges if edge.kind == kind]
        if not edges:
            continue
        widths = [line_width(edge) for edge in edges]
        differs = round(max(widths) - min(widths), 2) >= VISIBLE
        is_shared = any(edge.share is not None for edge in edges)
        told = f" ({SHARE_MEANING})" if differs and is_shared else ""
        width = max(widths) if is_shared else mark.width
        samples.append(Sample(words.get(mark.meaning, mark.meaning) + told, edge=kind, width=width))
        if differs and not is_shared:
            counted.append((max(widths), kind))
    if counted:
        width, kind = max(counted, key=lambda one: one[0])
        samples.append(Sample(COUNT_MEANING, edge=kind, width=width))
    return samples
