"""Pairs of ops that write one variable with no order between them: their result depends on chance."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from simplace.graph.build import CONTROL
from simplace.placement.placement import Placement

_LOOKED_AT = 64  # writers of one variable; more are cut off
_PREFIXES = ("ResourceApply", "ResourceSparseApply", "ResourceScatter", "Apply", "SparseApply", "Scatter", "Assign")
_HANDS_ON = ("Identity", "RefIdentity", "Enter", "RefEnter", "Switch", "RefSwitch", "Merge", "RefMerge")
_NOT_WRITES = ("ScatterNd", "AssignVariableXlaConcatND")
_BACK = ("NextIteration", "RefNextIteration")


@dataclass(frozen=True, slots=True)
class UnorderedWrites:
    """Name two ops that write `variable`, as ids of the placed graph."""

    variable: int
    first: int
    second: int


def unordered_writes(placement: Placement) -> tuple[UnorderedWrites, ...]:
    """List the pairs, by variable and ids. Ops on different branches of one condition are left out."""
    graph = placement.graph
    writers: dict[int, list[int]] = {}
    for node in range(2, len(graph)):
        if graph.ops[node].startswith(_PREFIXES) and graph.ops[node] not in _NOT_WRITES:
            variable = _variable(placement, node)
            if variable >= 0:
                writers.setdefault(variable, []).append(node)
    found = []
    for variable, nodes in sorted(writers.items()):
        some = nodes[:_LOOKED_AT]
        if len(some) < 2:
            continue
        after = {node: _reached(placement, node) for node in some}
        found += [
            UnorderedWrites(variable, a, b)
            for a, b in combinations(some, 2)
            if b not in after[a] and a not in after[b] and not _exclude_each_other(placement, a, b)
        ]
    return tuple(found)


def _variable(placement: Placement, node: int) -> int:
    """Follow the first input back to where the variable comes from, -1 if it has none."""
    graph, seen = placement.graph, set()
    while node not in seen:
        seen.add(node)
        source = next((e for e in graph.in_edges[node] if graph.edge_dst_slot[e] == 0), None)
        if source is None:
            return -1
        node = graph.edge_src[source]
        if graph.ops[node] not in _HANDS_ON:
            return node
    return -1


def _reached(placement: Placement, node: int) -> set[int]:
    graph, found, work = placement.graph, {node}, [node]
    while work:
        at = work.pop()
        if graph.ops[at] in _BACK:
            continue
        for edge in graph.out_edges[at]:
            after = graph.edge_dst[edge]
            if after not in found:
                found.add(after)
                work.append(after)
    return found


def _exclude_each_other(placement: Placement, one: int, other: int) -> bool:
    """Say whether two ops hang on different outputs of switches of one predicate."""
    mine, theirs = _conditions(placement, one), _conditions(placement, other)
    return any(predicate in theirs and theirs[predicate] != slot for predicate, slot in mine.items())


def _conditions(placement: Placement, node: int) -> dict[int, int]:
    """Map predicates to the output of their switch that leads to a node."""
    graph, found, seen, work = placement.graph, dict[int, int](), {node}, [node]
    while work:
        at = work.pop()
        if graph.ops[at] in ("Merge", "RefMerge"):
            continue
        for edge in graph.in_edges[at]:
            before = graph.edge_src[edge]
            if graph.ops[before] in ("Switch", "RefSwitch", "_SwitchN") and graph.edge_src_slot[edge] != CONTROL:
                predicate = next(graph.edge_src[e] for e in graph.in_edges[before] if graph.edge_dst_slot[e] == 1)
                found[predicate] = graph.edge_src_slot[edge]
            if before > 1 and before not in seen:
                seen.add(before)
                work.append(before)
    return found
