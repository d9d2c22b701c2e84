"""Decide which nodes of a placed graph share a box of a figure, so that it stays legible.

Constants, pass-through nodes and reads of a variable are drawn with a neighbour on their device; where more boxes are
left than allowed, name scopes collapse, the largest opened first, and a scope is split by device.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal

from simplace.graph.dtypes import DataType
from simplace.placement.placement import Placement

BoxKind = Literal["op", "scope", "argument", "result", "variable"]
_FOLD_FROM = 14  # nodes: a smaller graph is drawn as it is
_ARGUMENTS = ("_Arg", "_DeviceArg")
_RESULTS = ("_Retval", "_DeviceRetval")
_PASSES_ON = ("Identity", "RefIdentity", "ReadVariableOp")


@dataclass(frozen=True, slots=True)
class Box:
    """Hold the nodes drawn as one: `nodes` by id, without those folded in, unless there are no others."""

    label: str
    detail: str
    kind: BoxKind
    device: str
    nodes: tuple[int, ...]


def boxes(placement: Placement, limit: int) -> tuple[list[Box], dict[int, int]]:
    """Return the boxes by first node and the box number of every drawn node (folded ones included)."""
    drawn = sorted(placement.decisions)
    home = _fold(placement, drawn) if len(drawn) > _FOLD_FROM else {node: node for node in drawn}
    keepers = [node for node in drawn if home[node] == node]
    keys = _keys(placement, keepers, limit)
    groups: dict[tuple[str, ...], list[int]] = {}
    for node in keepers:
        groups.setdefault(keys[node], []).append(node)
    made = [_box(placement, key, nodes) for key, nodes in groups.items()]
    number = {key: i for i, key in enumerate(groups)}
    return made, {node: number[keys[home[node]]] for node in drawn if home[node] in keys}


def _fold(placement: Placement, drawn: list[int]) -> dict[int, int]:
    """Map each node to the node it is drawn with; -1 leaves it out."""
    graph = placement.graph
    home = {node: node for node in drawn}
    for node in drawn:
        home[node] = _neighbour(placement, node)
    for node in drawn:
        seen = {node}
        goal = home[node]
        while goal >= 0 and home[goal] != goal and home[goal] not in seen:
            seen.add(goal)
            goal = home[goal]
        home[node] = goal if goal < 0 or home[goal] == goal else node
    assert all(goal < len(graph) for goal in home.values()), "a node is drawn with a node of the graph"
    return home


def _neighbour(placement: Placement, node: int) -> int:
    graph, device = placement.graph, placement.device(node)
    op = graph.ops[node]
    if op == "NoOp":
        return -1
    if op == "Const":
        users = [graph.edge_dst[e] for e in graph.out_edges[node] if not graph.is_control(e)]
        near = [user for user in users if placement.device(user) == device]
        return near[0] if near else (node if users else -1)
    if op in _PASSES_ON:
        source = graph.edge_src[graph.data_in_edges(node)[0]]
        if placement.device(source) == device:
            return source
    return node


def _keys(placement: Placement, keepers: list[int], limit: int) -> dict[int, tuple[str, ...]]:
    """Give every node the key of its box; open the largest scope as long as the boxes stay within the limit."""
    if len(keepers) <= limit:
        return {node: (placement.device(node), str(node)) for node in keepers}
    paths = {node: _path(placement, node) for node in keepers}
    keys = {node: (placement.device(node), *paths[node][:1]) for node in keepers}
    closed: set[tuple[str, ...]] = set()
    while True:
        sizes = Counter(keys.values())
        largest = next((key for key, count in sizes.most_common() if count > 1 and key not in closed), None)
        if largest is None:
            return keys
        inside = [node for node in keepers if keys[node] == largest]
        opened = {node: (placement.device(node), *paths[node][: len(largest)]) for node in inside}
        if len(sizes) - 1 + len(set(opened.values())) > limit or all(k == largest for k in opened.values()):
            closed.add(largest)
            continue
        keys.update(opened)


def _path(placement: Placement, node: int) -> tuple[str, ...]:
    """Return the scopes of a node, outermost first, then its op and its name: the steps in which it can be opened."""
    graph = placement.graph
    op, name = graph.ops[node], graph.names[node]
    if op in _ARGUMENTS:
        resource = graph.out_types[node][0] == DataType.DT_RESOURCE
        return ("#variables" if resource else "#arguments", name)
    if op in _RESULTS:
        return ("#results", name)
    parts = [part for part in name.split("/")[:-1] if part != "Func" and not _is_number(part)]
    return (*parts, "#" + op, name)


def _is_number(part: str) -> bool:
    return part.startswith("_") and part[1:].isdigit()


def _box(placement: Placement, key: tuple[str, ...], nodes: list[int]) -> Box:
    graph, last = placement.graph, key[-1]
    if len(nodes) == 1:
        return _single(placement, nodes[0])
    ops = Counter(graph.ops[node] for node in nodes)
    if last in ("#variables", "#arguments", "#results"):
        kind: BoxKind = {"#variables": "variable", "#arguments": "argument", "#results": "result"}[last]  # type: ignore[assignment]
        return Box(f"{len(nodes)} {last[1:]}", "", kind, key[0], tuple(nodes))
    if last.startswith("#"):
        return Box(last[1:], "/".join(key[1:-1]), "scope", key[0], tuple(nodes))
    main = ", ".join(op for op, _ in ops.most_common(2))
    return Box("/".join(key[1:]), main + (", …" if len(ops) > 2 else ""), "scope", key[0], tuple(nodes))


def _single(placement: Placement, node: int) -> Box:
    graph, device = placement.graph, placement.device(node)
    op, name = graph.ops[node], graph.names[node]
    if op in _ARGUMENTS:
        if graph.out_types[node][0] == DataType.DT_RESOURCE:
            return Box(name, "variable", "variable", device, (node,))
        return Box(name, "argument", "argument", device, (node,))
    if op in _RESULTS:
        return Box(name.removesuffix("_RetVal"), "result", "result", device, (node,))
    kind: BoxKind = "variable" if op in ("VarHandleOp", "VariableV2", "Variable") else "op"
    return Box(op, "" if name == op else name, kind, device, (node,))
