"""Name the boxes of an overview: each is a part of a step on one device, or several."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from simplace.graph.op_kinds import is_arg, is_retval
from simplace.views.figures.boxes import Box, BoxKind
from simplace.views.figures.drawn_graph import DrawnGraph
from simplace.views.figures.folding import LEFT_OUT
from simplace.views.figures.step_parts import KINDS, StepPart

_NAMED, _NAMED_BRIEFLY = 3, 2  # names that a box lists
_OF_BOXES: dict[str, BoxKind] = {"variables": "variable", "input": "argument", "result": "result"}


def make_part_boxes(
    graph: DrawnGraph, parts: dict[int, StepPart], groups: list[list[int]], *, is_brief: bool = False
) -> tuple[list[Box], dict[int, int]]:
    """Return a box for each group of nodes, those with the first nodes first, and the box number of every node.

    Where it `is_brief`, boxes that have names say no more than these.
    """
    made = sorted(groups, key=lambda nodes: nodes[0])
    number = {node: i for i, nodes in enumerate(made) for node in nodes}
    box_of = {node: number[goal] for node, goal in graph.home.items() if goal != LEFT_OUT}
    return [_make_box(graph, parts, nodes, is_brief) for nodes in made], box_of


def _make_box(graph: DrawnGraph, parts: dict[int, StepPart], nodes: list[int], is_brief: bool) -> Box:
    found = list(dict.fromkeys(parts[node] for node in nodes))
    device, members = graph.placement.device(nodes[0]), tuple(nodes)
    kinds, most = {part.kind for part in found}, _NAMED_BRIEFLY if is_brief else _NAMED
    if len(kinds) > 1:
        label = _name_mixed(found, most)
        is_told = is_brief and StepPart("ops") not in found
        return Box(label, "" if is_told else _list_ops(graph, nodes), "part", device, members)
    (kind,) = kinds
    label, detail = _NAMES[kind](graph, parts, nodes, most)
    is_told = is_brief and kind != "ops"
    return Box(label, "" if is_told else detail, _OF_BOXES.get(kind, "part"), device, members)


def _list_names(parts: dict[int, StepPart], nodes: list[int]) -> list[str]:
    return list(dict.fromkeys(parts[node].name for node in nodes))


def _name_mixed(found: list[StepPart], most: int) -> str:
    """Return the names of parts of several kinds in the order in which a step runs, lines for ops of no other name."""
    ordered = sorted(found, key=lambda part: KINDS.index("layer" if part.kind == "ops" else part.kind))
    return _join_names(list(dict.fromkeys(map(_name_part, ordered))), most)


def _name_part(part: StepPart) -> str:
    if part.kind == "layer":
        return part.name
    return (_name_line(part.name) if part.kind == "ops" else "") or part.kind


def _name_line(at: str) -> str:
    """Return what a line is called in a box, "" for none.

    >>> _name_line("train.py:12"), _name_line("")
    ('line 12', '')
    """
    return f"line {at.rpartition(':')[2]}" if at else ""


def _name_variables(graph: DrawnGraph, parts: dict[int, StepPart], nodes: list[int], most: int) -> tuple[str, str]:
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


def _name_input(graph: DrawnGraph, parts: dict[int, StepPart], nodes: list[int], most: int) -> tuple[str, str]:
    given = [graph.placement.graph.names[node] for node in nodes if is_arg(graph.placement.graph.ops[node])]
    if len(nodes) == 1:
        return graph.placement.graph.names[nodes[0]], "argument" if given else graph.placement.graph.ops[nodes[0]]
    made = [node for node in nodes if not is_arg(graph.placement.graph.ops[node])]
    return "input", _list_ops(graph, made) if made else _join_names(given)


def _name_result(graph: DrawnGraph, parts: dict[int, StepPart], nodes: list[int], most: int) -> tuple[str, str]:
    names = _list_names(parts, nodes)
    own = [name for name in names if name]
    label = own[0] if len(own) == len(names) == 1 else "results" if len(nodes) > 1 else "result"
    made = [node for node in nodes if not is_retval(graph.placement.graph.ops[node])]
    given = [graph.placement.graph.names[node].removesuffix("_RetVal") for node in nodes]
    return label, _list_ops(graph, made) if made else _join_names(given)


def _name_layers(graph: DrawnGraph, parts: dict[int, StepPart], nodes: list[int], most: int) -> tuple[str, str]:
    names = _list_names(parts, nodes)
    many = f"{len(names)} layers: " if len(names) > most else ""
    return _join_names(names, most), many + _list_ops(graph, nodes)


def _name_update(graph: DrawnGraph, parts: dict[int, StepPart], nodes: list[int], most: int) -> tuple[str, str]:
    own = _name_owners(parts, nodes)
    return f"update: {own}" if own else "update", _list_ops(graph, nodes)


def _name_lines(graph: DrawnGraph, parts: dict[int, StepPart], nodes: list[int], most: int) -> tuple[str, str]:
    names = _list_names(parts, nodes)
    lines = [_name_line(name) for name in names if name]
    if not lines:
        return _list_ops(graph, nodes), ""
    return _join_names(lines, most), _list_ops(graph, nodes)


_NAMES: dict[str, Callable[[DrawnGraph, dict[int, StepPart], list[int], int], tuple[str, str]]] = {
    "variables": _name_variables,
    "input": _name_input,
    "result": _name_result,
    "layer": _name_layers,
    "ops": _name_lines,
    "update": _name_update,
    "loss": lambda graph, parts, nodes, most: ("loss", _list_ops(graph, nodes)),
    "gradients": lambda graph, parts, nodes, most: ("gradients", _list_ops(graph, nodes)),
    "initializers": lambda graph, parts, nodes, most: ("initializers", _list_ops(graph, nodes)),
}


def _join_names(names: list[str], most: int = _NAMED) -> str:
    """Join names, of more than `most` the first and the last.

    >>> _join_names(["a", "b"]), _join_names(["conv_1", "conv_2", "conv_3", "conv_4"])
    ('a, b', 'conv_1 … conv_4')
    """
    return ", ".join(names) if len(names) <= most else f"{names[0]} … {names[-1]}"


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
