"""The record of an annotated device graph: what is drawn, not how it looks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from viz.errors import FigureError
from viz.names import elide, visible

NodeKind = Literal["op", "scope", "argument", "result", "variable", "copy", "send", "receive", "part", "collective"]
EdgeKind = Literal["data", "control", "copy", "tie", "collective"]
Direction = Literal["auto", "page", "down", "right"]
Arrangement = Literal["ranks", "rows"]


NO_DEVICE = "no device"  # the kind of a group of nodes that are on none


@dataclass(frozen=True, slots=True)
class Group:
    """Describe a device, drawn as a cluster around its nodes.

    `kind` is the device type ("CPU", "GPU"), which picks corners and borders, or `NO_DEVICE` for what is on none.
    `index` picks the colour among the devices of that kind: give each device of a figure its own. `subtitle` is small
    text such as "3 ops · 1.2 MB".
    `badge` is a word or two that its nodes are marked with, for figures of many devices; "" marks nothing.
    Groups with one `frame` are drawn within a box of that title, such as the task that has the devices.
    """

    id: str
    title: str
    subtitle: str = ""
    kind: str = "CPU"
    index: int = 0
    frame: str = ""
    badge: str = ""


@dataclass(frozen=True, slots=True)
class Node:
    """Describe a node: an op, a collapsed scope of `count` ops, or another thing that lives on a device.

    `group` is a group's id, or None for a node outside all devices. `requested` names the device that was requested
    and not granted, "" where there is none. `changed` says what differs from another figure, such as "from GPU:1", ""
    where nothing does. `tooltip` follows the full label in the text shown on hover.
    """

    id: str
    label: str
    sublabel: str = ""
    group: str | None = None
    kind: NodeKind = "op"
    count: int = 1
    requested: str = ""
    host_memory: bool = False
    tooltip: str = ""
    changed: str = ""


@dataclass(frozen=True, slots=True)
class Edge:
    """Describe an edge that stands for `count` tensors, control dependencies or copies between devices.

    `label` is what travels, such as "float32 [256,512] · 512 KiB"; it is broken into lines at " · ". `back` is what
    travels from the target to the source on the same line, which then has a head at each end, "" for nothing. With
    `from_group` the edge leaves the device of its source as a whole, with `to_group` it ends at that of its target.
    `share` is its width between the thinnest (0) and the thickest (1) line, None where `count` decides.
    """

    source: str
    target: str
    kind: EdgeKind = "data"
    label: str = ""
    count: int = 1
    from_group: bool = False
    to_group: bool = False
    share: float | None = None
    back: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """Record of an annotated device graph.

    Order is meaning: groups, nodes and edges are drawn in the order given. `direction` says where edges point;
    "auto" picks whichever gives the better shape; "page" does so for a page of a given size, and else points down.
    `arrangement` says who lays out: Graphviz in ranks over all devices, or `viz.packing` in rows of devices, each of
    which is laid out for itself; DOT has no places, so it is the same for both.
    `description` is a sentence or two for readers who do not see the figure, and for the caption in print.

    Raises:
        FigureError: an id is used twice, a node names an unknown group, an edge names an unknown node, a kind
            or direction is not one of those listed, a count is below 1, or an edge tells only what travels back.

    >>> Figure("t", nodes=(Node("a", "a", group="GPU:0"),), groups=(Group("CPU:0", "CPU:0"),))
    Traceback (most recent call last):
        ...
    viz.errors.FigureError: node 'a' is in group 'GPU:0', which the figure does not have; its groups: CPU:0
    """

    title: str = ""
    caption: str = ""
    groups: tuple[Group, ...] = ()
    nodes: tuple[Node, ...] = ()
    edges: tuple[Edge, ...] = ()
    legend: bool = True
    direction: Direction = "auto"
    description: str = ""
    arrangement: Arrangement = "ranks"

    def __post_init__(self) -> None:
        _check_choice("the figure's direction", self.direction, get_args(Direction))
        _check_choice("the figure's arrangement", self.arrangement, get_args(Arrangement))
        _check_unique("group", (group.id for group in self.groups))
        _check_unique("node", (node.id for node in self.nodes))
        groups = {group.id: None for group in self.groups}
        for node in self.nodes:
            _check_node(node, groups)
        nodes = {node.id: None for node in self.nodes}
        for edge in self.edges:
            _check_edge(edge, nodes)

    def __str__(self) -> str:
        counts = f"{len(self.groups)} devices, {len(self.nodes)} nodes, {len(self.edges)} edges"
        return f"{self.title}: {counts}" if self.title else counts


def _check_node(node: Node, groups: Iterable[str]) -> None:
    _check_choice(f"the kind of node {_quote(node.id)}", node.kind, get_args(NodeKind))
    _check_count(f"node {_quote(node.id)}", node.count)
    if node.group is not None and node.group not in groups:
        raise FigureError(
            f"node {_quote(node.id)} is in group {_quote(node.group)}, which the figure does not have; "
            f"its groups: {_listed(groups)}"
        )


def _check_edge(edge: Edge, nodes: Iterable[str]) -> None:
    name = f"edge {_quote(edge.source)} -> {_quote(edge.target)}"
    _check_choice(f"the kind of {name}", edge.kind, get_args(EdgeKind))
    _check_count(name, edge.count)
    if edge.back and not edge.label:
        raise FigureError(f"{name} says what travels back, {_quote(edge.back)}, and not what travels")
    for end in (edge.source, edge.target):
        if end not in nodes:
            raise FigureError(f"{name} needs a node {_quote(end)}; the figure's nodes: {_listed(nodes)}")


def _check_choice(what: str, value: str, allowed: Iterable[str]) -> None:
    if value not in allowed:
        raise FigureError(f"{what} is {_quote(value)}; choose from: {', '.join(allowed)}")


def _check_count(what: str, count: int) -> None:
    if count < 1:
        raise FigureError(f"{what} has count {count}; a count is 1 or more")


def _check_unique(what: str, ids: Iterable[str]) -> None:
    twice = [name for name, uses in Counter(ids).items() if uses > 1]
    if twice:
        raise FigureError(f"two {what}s have the id {_quote(twice[0])}; ids must differ")


def _listed(names: Iterable[str], limit: int = 12) -> str:
    ordered = sorted(names)
    if not ordered:
        return "none"
    rest = len(ordered) - limit
    return ", ".join(_plain(name) for name in ordered[:limit]) + (f" and {rest} more" if rest > 0 else "")


def _quote(name: str) -> str:
    return repr(elide(name, 80))


def _plain(name: str) -> str:
    return visible(elide(name, 80))
