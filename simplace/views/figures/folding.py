"""Decide which nodes of a placed graph are drawn with a neighbour: constants, pass-through nodes, variable reads."""

from __future__ import annotations

from simplace.graph.op_kinds import is_constant, is_identity
from simplace.placement.placement import Placement

LEFT_OUT = -1


def fold_nodes(placement: Placement, drawn: list[int]) -> dict[int, int]:
    """Return, for each drawn node, the node of its device that it is drawn with, itself where it is drawn alone.

    `LEFT_OUT` stands for nodes that no tensor enters or leaves: NoOps, and constants that nothing reads.
    """
    step = {node: _find_neighbour(placement, node) for node in drawn}
    step = {node: goal if goal in step or goal == LEFT_OUT else node for node, goal in step.items()}
    home: dict[int, int] = {}
    for node in drawn:
        chain = []
        at = node
        while at not in home:
            home[at] = at  # a cycle ends here: a loop of pass-through nodes
            chain.append(at)
            if step[at] in (LEFT_OUT, at):
                home[at] = step[at]
                break
            at = step[at]
        goal = home[at]
        for passed in chain:
            home[passed] = goal
    return home


def _find_neighbour(placement: Placement, node: int) -> int:
    graph, device = placement.graph, placement.device(node)
    op = graph.ops[node]
    if op == "NoOp":
        return LEFT_OUT
    if is_constant(op):
        users = [graph.edge_dst[e] for e in graph.out_edges[node] if not graph.is_control(e)]
        if not users:
            return LEFT_OUT
        return users[0] if all(placement.device(user) == device for user in users) else node
    if is_identity(op) or op == "ReadVariableOp":
        sources = [graph.edge_src[e] for e in graph.data_in_edges(node)]
        if sources and placement.device(sources[0]) == device:
            return sources[0]
    return node
