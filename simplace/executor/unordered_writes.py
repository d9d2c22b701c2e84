"""Pairs of ops that write one variable with no order between them: their result depends on chance."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from simplace.graph.build import CONTROL
from simplace.placement.placement import Placement

_LOOKED_AT = 64  # writers of one variable; more are cut off
_AT_ONCE = 64  # variables whose writers are followed through the graph in one go
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
    several = [(variable, nodes[:_LOOKED_AT]) for variable, nodes in sorted(writers.items()) if len(nodes) > 1]
    found = []
    for at in range(0, len(several), _AT_ONCE):
        some = several[at : at + _AT_ONCE]
        after, bit = _reached(placement, [node for _, nodes in some for node in nodes])
        found += [
            UnorderedWrites(variable, a, b)
            for variable, nodes in some
            for a, b in combinations(nodes, 2)
            if not (after[a] & bit[b] or after[b] & bit[a] or _exclude_each_other(placement, a, b))
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


def _reached(placement: Placement, nodes: list[int]) -> tuple[list[int], dict[int, int]]:
    """Return a set of bits for each node of the graph, and the bit of each of `nodes`: those that it leads to."""
    graph = placement.graph
    bit = {node: 1 << i for i, node in enumerate(nodes)}
    after = [bit.get(node, 0) for node in range(len(graph))]
    for node in reversed(_order(placement)):
        if graph.ops[node] not in _BACK:
            for edge in graph.out_edges[node]:
                after[node] |= after[graph.edge_dst[edge]]
    return after, bit


def _order(placement: Placement) -> list[int]:
    """Put each node before those that wait for it; the way back of a loop counts for nothing."""
    graph = placement.graph
    waiting = [sum(graph.ops[graph.edge_src[e]] not in _BACK for e in graph.in_edges[i]) for i in range(len(graph))]
    ready = [node for node, count in enumerate(waiting) if count == 0]
    for node in ready:  # grows while it is walked
        if graph.ops[node] not in _BACK:
            for edge in graph.out_edges[node]:
                waiting[graph.edge_dst[edge]] -= 1
                if waiting[graph.edge_dst[edge]] == 0:
                    ready.append(graph.edge_dst[edge])
    return ready


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
