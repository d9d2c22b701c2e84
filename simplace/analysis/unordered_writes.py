"""Pairs of ops that write one variable with no order between them: a race."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from simplace.graph.algorithm import order_by_inputs
from simplace.graph.builder import CONTROL
from simplace.graph.op_kinds import (
    ENTERS,
    IDENTITIES,
    MERGES,
    SWITCHES,
    is_merge,
    is_next_iteration,
    is_switch,
    is_write,
)
from simplace.program.placed_graph import PlacedGraph

_LOOKED_AT = 64  # writers of one variable; further ones are ignored
_AT_ONCE = 64  # variables whose writers are followed through the graph in one go
_FEW = 8  # writers of a variable between which a short search is tried
_NEARBY = 256  # nodes that it looks at, from each end
_HANDS_ON = IDENTITIES | ENTERS | SWITCHES | MERGES


@dataclass(frozen=True, slots=True)
class UnorderedWrites:
    """Name two ops that write `variable`, as ids of the placed graph."""

    variable: int
    first: int
    second: int


def unordered_writes(placed: PlacedGraph) -> tuple[UnorderedWrites, ...]:
    """List the pairs, by variable and ids. Ops on different branches of one condition are left out.

    Most pairs are told by a short search from both ops; the writers of the other variables are followed through the
    whole graph, those of many variables in one go.
    """
    graph = placed.graph
    writers: dict[int, list[int]] = {}
    for node in graph.op_ids:
        if is_write(graph.ops[node]):
            variable = _find_variable(placed, node)
            if variable >= 0:
                writers.setdefault(variable, []).append(node)
    several = {variable: nodes[:_LOOKED_AT] for variable, nodes in sorted(writers.items()) if len(nodes) > 1}
    pairs = {variable: _find_pairs_nearby(placed, nodes) for variable, nodes in several.items()}
    far = [(variable, several[variable]) for variable, found in pairs.items() if found is None]
    return tuple(
        UnorderedWrites(variable, a, b)
        for variable, found in {**pairs, **_find_pairs(placed, far)}.items()
        for a, b in found or ()
        if not _exclude_each_other(placed, a, b)
    )


def _find_pairs_nearby(placed: PlacedGraph, nodes: list[int]) -> list[tuple[int, int]] | None:
    """Return the pairs of `nodes` of which none reaches the other, None where a short search does not tell."""
    if len(nodes) > _FEW:
        return None
    found = []
    for a, b in combinations(nodes, 2):
        ways = _reaches(placed, a, b), _reaches(placed, b, a)
        if True in ways:
            continue
        if None in ways:
            return None
        found.append((a, b))
    return found


def _reaches(placed: PlacedGraph, start: int, goal: int) -> bool | None:
    """Return whether a node reaches another, by a search from both; None after `_NEARBY` nodes of each."""
    ahead, behind = [start], [goal]
    after, before = {start}, {goal}
    for at in range(_NEARBY):
        if at == len(ahead) or at == len(behind):
            return False
        readers, inputs = _list_readers(placed, ahead[at]), _list_inputs(placed, behind[at])
        if _advance(readers, ahead, after, before) or _advance(inputs, behind, before, after):
            return True
    return None


def _advance(nodes: list[int], waiting: list[int], seen: set[int], others: set[int]) -> bool:
    """Go on to nodes that were not seen yet; return whether the search from the other end has met one of them."""
    for node in nodes:
        if node in others:
            return True
        if node not in seen:
            seen.add(node)
            waiting.append(node)
    return False


def _list_readers(placed: PlacedGraph, node: int) -> list[int]:
    graph = placed.graph
    return [] if is_next_iteration(graph.ops[node]) else [graph.edge_dst[edge] for edge in graph.out_edges[node]]


def _list_inputs(placed: PlacedGraph, node: int) -> list[int]:
    graph = placed.graph
    sources = [graph.edge_src[edge] for edge in graph.in_edges[node]]
    return [source for source in sources if not is_next_iteration(graph.ops[source])]


def _find_pairs(placed: PlacedGraph, several: list[tuple[int, list[int]]]) -> dict[int, list[tuple[int, int]]]:
    """Return, by variable, the pairs of its writers of which none reaches the other."""
    found = {}
    order = _order_nodes(placed) if several else []
    for at in range(0, len(several), _AT_ONCE):
        some = several[at : at + _AT_ONCE]
        after, bit = _find_reached(placed, order, [node for _, nodes in some for node in nodes])
        for variable, nodes in some:
            pairs = combinations(nodes, 2)
            found[variable] = [(a, b) for a, b in pairs if not (after[a] & bit[b] or after[b] & bit[a])]
    return found


def _find_variable(placed: PlacedGraph, node: int) -> int:
    """Follow the first input back to where the variable comes from, -1 if it has none."""
    ops = placed.graph.ops
    return next((at for at in placed.graph.walk_first_inputs(node) if ops[at] not in _HANDS_ON), -1)


def _find_reached(placed: PlacedGraph, order: list[int], nodes: list[int]) -> tuple[list[int], dict[int, int]]:
    """Return the bit of each of `nodes`, and for each node of the graph, which `order` sorts, the bits of those that it
    reaches."""
    graph = placed.graph
    bit = {node: 1 << i for i, node in enumerate(nodes)}
    after = [bit.get(node, 0) for node in range(len(graph))]
    for node in reversed(order):
        if not is_next_iteration(graph.ops[node]):
            for edge in graph.out_edges[node]:
                after[node] |= after[graph.edge_dst[edge]]
    return after, bit


def _order_nodes(placed: PlacedGraph) -> list[int]:
    """Return the nodes in topological order; the back edges of loops are ignored."""
    graph = placed.graph
    is_back = [is_next_iteration(op) for op in graph.ops]
    waiting = [sum(not is_back[graph.edge_src[e]] for e in graph.in_edges[i]) for i in range(len(graph))]
    return order_by_inputs(
        waiting, lambda node: [] if is_back[node] else [graph.edge_dst[edge] for edge in graph.out_edges[node]]
    )


def _exclude_each_other(placed: PlacedGraph, one: int, other: int) -> bool:
    """Return whether two ops depend on different outputs of Switch nodes with the same predicate."""
    mine, theirs = _find_conditions(placed, one), _find_conditions(placed, other)
    return any(predicate in theirs and theirs[predicate] != slot for predicate, slot in mine.items())


def _find_conditions(placed: PlacedGraph, node: int) -> dict[int, int]:
    """Return the predicates that a node depends on, each with the output of its Switch node."""
    graph, found, seen, work = placed.graph, dict[int, int](), {node}, [node]
    while work:
        at = work.pop()
        if is_merge(graph.ops[at]):
            continue
        for edge in graph.in_edges[at]:
            before = graph.edge_src[edge]
            if is_switch(graph.ops[before]) and graph.edge_src_slot[edge] != CONTROL:
                predicate = next(graph.edge_src[e] for e in graph.in_edges[before] if graph.edge_dst_slot[e] == 1)
                found[predicate] = graph.edge_src_slot[edge]
            if before > 1 and before not in seen:
                seen.add(before)
                work.append(before)
    return found
