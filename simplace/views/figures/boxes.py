"""Decide which nodes of a placed graph share a box of a figure, so that it stays legible."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal

from simplace.graph.dtypes import DataType
from simplace.graph.function_names import shown_name
from simplace.graph.op_kinds import VARIABLE_HANDLE, is_arg, is_retval, is_variable
from simplace.placement.placement import Placement
from simplace.placement.xla_compiler import Cluster, find_clusters
from simplace.program.known_names import Path, strip_number
from simplace.views.figures.acyclic_groups import split_cycles
from simplace.views.figures.device_parts import DeviceParts, list_device_parts
from simplace.views.figures.drawn_graph import DrawnGraph
from simplace.views.figures.folding import LEFT_OUT
from simplace.views.figures.scopes import OTHERS, Scope, build_tree, insert_stems, open_scopes
from simplace.views.figures.step_parts import StepPart, find_parts

BoxKind = Literal["op", "scope", "argument", "result", "variable", "part"]
_DEEPEST = 40  # scopes, one in the other, that can be opened
_GROUPS: dict[str, BoxKind] = {"variables": "variable", "arguments": "argument", "results": "result"}
_MADE_ENDING = re.compile(r"((_read)?_readvariableop)?_resource$|_RetVal$")


@dataclass(frozen=True, slots=True)
class Box:
    """Record of the nodes drawn as one: `nodes` by id, without those folded in.

    `device` is a full device name, "" for nodes that placement did not reach.
    """

    label: str
    detail: str
    kind: BoxKind
    device: str
    nodes: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class BoxPaths:
    """Record of the nodes that a figure draws and, where they are too many, the path by which each is found.

    It equals only itself, so that what is found of it can be kept.
    """

    graph: DrawnGraph

    @classmethod
    def of(cls, placement: Placement) -> BoxPaths:
        """Return those of a placement; of the last one they are kept, since a figure is made in several sizes."""
        return _find_paths(_Same(placement))

    @cached_property
    def paths(self) -> dict[int, Path]:
        """Map each node that is drawn by itself to its path."""
        graph = self.graph
        return {
            node: _build_path(graph.placement, node, graph.paths, graph.home, self.parts[node])
            for node in graph.keepers
        }

    @cached_property
    def parts(self) -> dict[int, StepPart]:
        """Map each node that is drawn by itself to its part of a step."""
        return find_parts(self.graph)

    @cached_property
    def device_parts(self) -> list[DeviceParts]:
        """List the parts of a step on each device."""
        return list_device_parts(self.graph, self.parts)

    @cached_property
    def grouped(self) -> dict[int, tuple[list[Box], dict[int, int]]]:
        """Map each number of boxes that was tried to what `group_into_boxes` returned of it."""
        return {}

    @cached_property
    def clusters(self) -> Mapping[int, Cluster]:
        """Map each call that XLA compiles to what it compiles."""
        return {cluster.node: cluster for cluster in find_clusters(self.graph.placement)}

    @cached_property
    def shared(self) -> int:
        """Return how many outer scopes all nodes but lone ones have in common."""
        return _count_shared_scopes(list(self.graph.paths.values()))

    @cached_property
    def devices(self) -> dict[int, str]:
        """Map each node that is drawn by itself to its device."""
        return {node: self.graph.placement.device(node) for node in self.graph.keepers}

    @cached_property
    def _root(self) -> Scope:
        return build_tree(self.paths, self.devices)

    def choose_keys(self, limit: int) -> dict[int, Path]:
        """Return the path of each node's box, one by one where they are no more than `limit`."""
        keepers = self.graph.keepers
        if len(keepers) <= limit:
            return {node: (f"#{node}",) for node in keepers}
        return open_scopes(self.paths, self.devices, limit, self._root)


class _Same:
    """A placement as a key, which is equal to that of the same placement alone."""

    def __init__(self, placement: Placement) -> None:
        self.placement = placement

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.placement is other.placement

    def __hash__(self) -> int:
        return id(self.placement)


@lru_cache(maxsize=1)
def _find_paths(key: _Same) -> BoxPaths:
    return BoxPaths(DrawnGraph.of(key.placement))


def group_into_boxes(placement: Placement, limit: int) -> tuple[list[Box], dict[int, int]]:
    """Return the boxes by first node, and the box number of every drawn node (folded ones included).

    Constants, pass-through nodes and reads of a variable are drawn with a neighbour on their device, and NoOps not at
    all, unless the graph is small. Where more than `limit` boxes are left, name scopes collapse.
    """
    named = BoxPaths.of(placement)
    if limit not in named.grouped:
        named.grouped[limit] = _group_into_boxes(named, limit)
    return named.grouped[limit]


def _group_into_boxes(named: BoxPaths, limit: int) -> tuple[list[Box], dict[int, int]]:
    graph, placement = named.graph, named.graph.placement
    keys = named.choose_keys(limit)
    groups: dict[tuple[str, Path], list[int]] = {}
    for node, device in named.devices.items():
        groups.setdefault((device, keys[node]), []).append(node)
    acyclic = list(groups.values())
    if len(groups) < len(graph.keepers):
        acyclic = split_cycles(acyclic, graph.local_edges, limit - len(groups))
    made = [
        _make_box(named, keys[nodes[0]], nodes)
        if len({keys[node] for node in nodes}) == 1
        else _make_mixed_box(placement, nodes)
        for nodes in acyclic
    ]
    number = {node: i for i, nodes in enumerate(acyclic) for node in nodes}
    return made, {node: number[goal] for node, goal in graph.home.items() if goal != LEFT_OUT}


def _count_shared_scopes(paths: list[Path]) -> int:
    """Return how many outer scopes all nodes but lone ones have in common."""
    scoped = [path for path in paths if len(path) > 1]
    if len(scoped) < 2:
        return 0
    first, last = min(scoped)[:-1], max(scoped)[:-1]
    return next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))


def _build_path(placement: Placement, node: int, parts: dict[int, Path], home: dict[int, int], role: StepPart) -> Path:
    """Return the path by which a node is found: variables of a kind, arguments and results have scopes of their own."""
    graph = placement.graph
    op, name = graph.ops[node], graph.names[node]
    if is_arg(op) and role.kind == "variables":
        owner = f" of {role.name}" if role.name else ""
        return (f"#variables{owner}", f"#{_name_reader(placement, node, parts, home)}", f"#{name}")
    if is_arg(op):
        return ("#arguments", f"#{name}")
    if is_retval(op):
        return ("#results", f"#{name}")
    return (*insert_stems(parts[node][:_DEEPEST]), f"#{node}")


def _is_resource(placement: Placement, node: int) -> bool:
    return bool(placement.graph.out_types[node][0] == DataType.DT_RESOURCE)


def _name_reader(placement: Placement, variable: int, parts: dict[int, Path], home: dict[int, int]) -> str:
    """Return the outermost scope that reads a variable first, "" where none does."""
    graph = placement.graph
    readers = [graph.edge_dst[e] for e in graph.out_edges[variable]]
    for reader in readers[:1]:
        if home.get(reader) == variable:
            readers = [graph.edge_dst[e] for e in graph.out_edges[reader]] + readers[1:]
    goals = (home.get(reader, LEFT_OUT) for reader in readers)
    found = next((parts[goal] for goal in goals if goal in parts and goal != variable), ())
    return found[0] if len(found) > 1 else ""


def _make_box(named: BoxPaths, path: Path, nodes: list[int]) -> Box:
    placement, parts, shared = named.graph.placement, named.graph.paths, named.shared
    device, members = placement.device(nodes[0]), tuple(nodes)
    if len(nodes) == 1 and nodes[0] in named.clusters:
        cluster = named.clusters[nodes[0]]
        return Box(f"XLA: {_count_ops(cluster)}", shown_name(cluster.function), "op", device, members)
    if len(nodes) == 1:
        return _make_single_box(placement, nodes[0], parts[nodes[0]][shared:] or parts[nodes[0]])
    kinds = {named.paths[node][0].partition(" of ")[0] for node in nodes} if path[0] == OTHERS else set()
    first = kinds.pop() if len(kinds) == 1 else path[0]  # what is left of a device may be all of one kind
    what, _, owner = first[1:].partition(" of ")
    if first.startswith("#") and what in _GROUPS:
        reader = owner or (path[1][1:] if len(path) > 1 else "")
        return Box(f"{len(nodes)} {what}", f"of {reader}" if reader else "", _GROUPS[what], device, members)
    ops = Counter(placement.graph.ops[node] for node in nodes)
    main = ", ".join(op for op, _ in ops.most_common(2)) + (", …" if len(ops) > 2 else "")
    if path[0] == OTHERS:
        return Box(main, f"{len(ops)} types of ops" if len(ops) > 2 else "", "scope", device, members)
    depth = sum(1 for step in path if step.endswith("*"))
    variants = {parts[node][depth - 1] for node in nodes}
    outer = "/".join(parts[nodes[0]][shared : depth - 1])
    same_names = all(len(parts[node]) == depth for node in nodes)
    label = variants.pop() if len(variants) == 1 else f"{path[-1][:-1]} ×{len(variants)}"
    if same_names and len(ops) == 1:
        op = next(iter(ops))
        return Box(
            f"{op} ×{len(nodes)}", _format_location(outer, strip_number(parts[nodes[0]][-1]), op), "op", device, members
        )
    return Box(label, outer or main, "scope", device, members)


def _make_mixed_box(placement: Placement, nodes: list[int]) -> Box:
    """Return the box of groups that take turns: drawn apart they would seem to depend on each other in a cycle."""
    ops = Counter(placement.graph.ops[node] for node in nodes)
    named = ", ".join(f"{op} ×{count}" if count > 1 else op for op, count in ops.most_common(2))
    return Box(named + (", …" if len(ops) > 2 else ""), "by turns", "scope", placement.device(nodes[0]), tuple(nodes))


def _count_ops(cluster: Cluster) -> str:
    count = len(cluster.ops)
    return f"{count:,} op{'s' * (count != 1)}"


def _make_single_box(placement: Placement, node: int, parts: Path) -> Box:
    graph, device = placement.graph, placement.device(node)
    op, name = graph.ops[node], _MADE_ENDING.sub("", graph.names[node])
    if is_arg(op):
        kind: BoxKind = "variable" if _is_resource(placement, node) else "argument"
        return Box(placement.notes(node).variable or name, kind, kind, device, (node,))
    if is_retval(op):
        return Box(name, "result", "result", device, (node,))
    kind = "variable" if op == VARIABLE_HANDLE or is_variable(op) else "op"
    return Box(op, _format_location("/".join(parts[:-1]), parts[-1], op), kind, device, (node,))


def _format_location(outer: str, name: str, op: str) -> str:
    """Return where an op is: its scope, and its name where that is not the op's own."""
    own = "" if name == op else name
    return "/".join(filter(None, (outer, own)))
