"""Decide the boxes of an overview: the parts of a step on each device, few and without a cycle that is not there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import compress, pairwise
from operator import not_

from simplace.graph.op_kinds import is_arg, is_retval
from simplace.views.figures.acyclic_groups import sort_groups, split_cycles
from simplace.views.figures.boxes import Box, BoxKind
from simplace.views.figures.drawn_graph import DrawnGraph
from simplace.views.figures.folding import LEFT_OUT
from simplace.views.figures.step_parts import KINDS, StepPart

_MOST, MOST_BOXES = 8, 10  # boxes of a device: wanted, and where its layers have few of them
_SPLIT = 1  # boxes more that a device may have for those in a cycle to be split; beyond they are drawn as one box
_NAMED = 3  # names that a box lists
_LAYERS = 3  # boxes of layers that a device has at least, where there is room
_OF_BOXES: dict[str, BoxKind] = {"variables": "variable", "input": "argument", "result": "result"}


def make_part_boxes(graph: DrawnGraph, parts: dict[int, StepPart], room: int) -> tuple[list[Box], dict[int, int]]:
    """Return at most `room` boxes a device, and the box number of every node.

    A device has eight, or some more where it has three boxes of layers. Layers that follow each other share a box.
    """
    by_device: dict[str, dict[StepPart, list[int]]] = {}
    for node, part in parts.items():
        by_device.setdefault(graph.placement.device(node), {}).setdefault(part, []).append(node)
    made: list[list[int]] = []
    for groups in by_device.values():
        made += _reduce_groups(graph, parts, list(groups.values()), room)
    made.sort(key=lambda nodes: nodes[0])
    number = {node: i for i, nodes in enumerate(made) for node in nodes}
    box_of = {node: number[goal] for node, goal in graph.home.items() if goal != LEFT_OUT}
    return [_make_box(graph, parts, nodes) for nodes in made], box_of


def _reduce_groups(
    graph: DrawnGraph, parts: dict[int, StepPart], groups: list[list[int]], room: int
) -> list[list[int]]:
    """Return the groups of one device without cycles, and joined until they number at most `room`."""
    inside = {node for group in groups for node in group}
    edges = [ends for ends in graph.local_edges if ends[0] in inside and ends[1] in inside]
    made = sort_groups(split_cycles(groups, edges, _SPLIT), edges)
    for kinds, least, most in _JOINED:
        if len(made) <= min(room, most):
            continue
        is_chosen = [_kind(parts, group) in kinds for group in made]
        chosen = list(compress(made, is_chosen))
        others = list(compress(made, map(not_, is_chosen)))
        wanted = max(min(room, most) - len(others), min(least, room - len(others)), 1)
        made = sort_groups(split_cycles([*_join(chosen, wanted), *others], edges, 0), edges)
    return made


# What is joined where a device has more than a number of boxes, and how many of them are left where there is room:
# variables of the optimizer with those of metrics, layers with each other; then all that computes, then everything.
_JOINED: tuple[tuple[frozenset[str], int, int], ...] = (
    (frozenset({"result"}), 1, _MOST),
    (frozenset({"state"}), 1, _MOST),
    (frozenset({"update"}), 1, _MOST),
    (frozenset({"layer", "ops"}), _LAYERS, _MOST),
    (frozenset({"layer", "ops", "loss", "gradients", "update", "initializers", "result"}), 1, MOST_BOXES),
    (frozenset({"variables", "state"}), 1, MOST_BOXES),
    (frozenset({*KINDS, "state"}), 1, MOST_BOXES),
)


def _kind(parts: dict[int, StepPart], group: list[int]) -> str:
    """Return the kind of most nodes of a group; variables that are not the model's are its "state"."""
    kind, name = Counter(parts[node] for node in group).most_common(1)[0][0]
    return "state" if kind == "variables" and name else kind


def _join(groups: list[list[int]], wanted: int) -> list[list[int]]:
    """Join neighbours until `wanted` groups are left: those with the fewest nodes first, of equals the first two.

    >>> _join([[1], [2], [3, 4, 5], [6], [7]], 3), _join([[1], [2]], 3)
    ([[1, 2], [3, 4, 5], [6, 7]], [[1], [2]])
    """
    some: dict[int, list[int]] = {i: list(group) for i, group in enumerate(groups)}
    after, before = {i: i + 1 for i in some}, {i: i - 1 for i in some}
    pairs = [(len(one) + len(other), i) for i, (one, other) in enumerate(pairwise(groups))]
    heapify(pairs)
    while len(some) > wanted:
        size, at = heappop(pairs)
        end = after.get(at, -1)
        if end not in some or len(some[at]) + len(some[end]) != size:
            continue  # one of the two was joined with another since
        some[at] += some.pop(end)
        after[at], last = after.pop(end), before.pop(end)
        assert last == at, "groups are joined with their neighbours"
        before[after[at]] = at
        for first, second in ((before[at], at), (at, after[at])):
            if first in some and second in some:
                heappush(pairs, (len(some[first]) + len(some[second]), first))
    return list(some.values())


def _make_box(graph: DrawnGraph, parts: dict[int, StepPart], nodes: list[int]) -> Box:
    found = list(dict.fromkeys(parts[node] for node in nodes))
    device, members = graph.placement.device(nodes[0]), tuple(nodes)
    kinds = {part.kind for part in found}
    if len(kinds) > 1:
        label, detail = _name_mixed(found), _list_ops(graph, nodes)
        return Box(label, detail, "part", device, members)
    (kind,) = kinds
    label, detail = _NAMES[kind](graph, parts, nodes)
    return Box(label, detail, _OF_BOXES.get(kind, "part"), device, members)


def _list_names(parts: dict[int, StepPart], nodes: list[int]) -> list[str]:
    return list(dict.fromkeys(parts[node].name for node in nodes))


def _name_mixed(found: list[StepPart]) -> str:
    names = [part.name if part.kind == "layer" else part.kind for part in found]
    return _join_names(list(dict.fromkeys(names)))


def _name_variables(graph: DrawnGraph, parts: dict[int, StepPart], nodes: list[int]) -> tuple[str, str]:
    known = [graph.placement.notes(node).variable or graph.placement.graph.names[node] for node in nodes]
    if len(nodes) == 1:
        return known[0], "variable"
    owner = _name_owners(parts, nodes)
    if owner:
        return f"{len(nodes)} variables", f"of {owner}"
    inner = [name.split("/") for name in known]
    inner = [[part for part in path if not part.startswith("replica_")] for path in inner]
    last = [path[-1] if len(path) < 2 else path[-2] for path in inner]
    return f"{len(nodes)} variables", _join_names(list(dict.fromkeys(last)))


def _name_input(graph: DrawnGraph, parts: dict[int, StepPart], nodes: list[int]) -> tuple[str, str]:
    given = [graph.placement.graph.names[node] for node in nodes if is_arg(graph.placement.graph.ops[node])]
    if len(nodes) == 1:
        return graph.placement.graph.names[nodes[0]], "argument" if given else graph.placement.graph.ops[nodes[0]]
    made = [node for node in nodes if not is_arg(graph.placement.graph.ops[node])]
    return "input", _list_ops(graph, made) if made else _join_names(given)


def _name_result(graph: DrawnGraph, parts: dict[int, StepPart], nodes: list[int]) -> tuple[str, str]:
    names = _list_names(parts, nodes)
    own = [name for name in names if name]
    label = own[0] if len(own) == len(names) == 1 else "results" if len(nodes) > 1 else "result"
    made = [node for node in nodes if not is_retval(graph.placement.graph.ops[node])]
    given = [graph.placement.graph.names[node].removesuffix("_RetVal") for node in nodes]
    return label, _list_ops(graph, made) if made else _join_names(given)


def _name_layers(graph: DrawnGraph, parts: dict[int, StepPart], nodes: list[int]) -> tuple[str, str]:
    names = _list_names(parts, nodes)
    many = f"{len(names)} layers: " if len(names) > _NAMED else ""
    return _join_names(names), many + _list_ops(graph, nodes)


def _name_update(graph: DrawnGraph, parts: dict[int, StepPart], nodes: list[int]) -> tuple[str, str]:
    own = _name_owners(parts, nodes)
    return f"update: {own}" if own else "update", _list_ops(graph, nodes)


def _name_lines(graph: DrawnGraph, parts: dict[int, StepPart], nodes: list[int]) -> tuple[str, str]:
    names = _list_names(parts, nodes)
    lines = [f"line {name.rpartition(':')[2]}" for name in names if name]
    if not lines:
        return _list_ops(graph, nodes), ""
    return _join_names(lines), _list_ops(graph, nodes)


_NAMES: dict[str, Callable[[DrawnGraph, dict[int, StepPart], list[int]], tuple[str, str]]] = {
    "variables": _name_variables,
    "input": _name_input,
    "result": _name_result,
    "layer": _name_layers,
    "ops": _name_lines,
    "update": _name_update,
    "loss": lambda graph, _, nodes: ("loss", _list_ops(graph, nodes)),
    "gradients": lambda graph, _, nodes: ("gradients", _list_ops(graph, nodes)),
    "initializers": lambda graph, _, nodes: ("initializers", _list_ops(graph, nodes)),
}


def _join_names(names: list[str]) -> str:
    """Join names, of many the first and the last.

    >>> _join_names(["a", "b"]), _join_names(["conv_1", "conv_2", "conv_3", "conv_4"])
    ('a, b', 'conv_1 … conv_4')
    """
    return ", ".join(names) if len(names) <= _NAMED else f"{names[0]} … {names[-1]}"


def _name_owners(parts: dict[int, StepPart], nodes: list[int]) -> str:
    """Return what some nodes are of, the owner of most of them first, "" where some have none."""
    owners = Counter(parts[node].name for node in nodes)
    if "" in owners:
        return ""
    names = [name for name, _ in owners.most_common()]
    return ", ".join(names) if len(names) < _NAMED else f"{names[0]} and {len(names) - 1} more"


def _list_ops(graph: DrawnGraph, nodes: list[int]) -> str:
    ops = Counter(graph.placement.graph.ops[node] for node in nodes)
    said = [op if count == 1 else f"{op} ×{count}" for op, count in ops.most_common(2)]
    return ", ".join(said) + (", …" if len(ops) > 2 else "")
