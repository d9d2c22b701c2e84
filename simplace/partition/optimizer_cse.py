"""Merge the nodes that compute the same, before a subgraph runs.

Mirrors tensorflow/core/graph/optimizer_cse.cc, which GraphOptimizer calls on each device's subgraph after the
partition, whether or not Grappler runs. Inputs of commutative ops are compared in their order.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from simplace.graph.algorithm import order_by_inputs
from simplace.graph.builder import CONTROL
from simplace.graph.node_def import AttrValue, FuncRef, TensorInfo
from simplace.graph.op_kinds import PLACEHOLDERS, is_next_iteration
from simplace.partition.graph_partition import PartEdge, PartitionedGraph


def merge_equal_nodes(graph: PartitionedGraph) -> PartitionedGraph:
    """Return the graph with the edges of each node that equals an earlier one going out of that one.

    What has been merged leads nowhere: `remove_dead_nodes` takes it out.
    """
    merged = _find_equal(graph)
    if not merged:
        return graph
    outs: list[list[PartEdge]] = [[] if i in merged else list(edges) for i, edges in enumerate(graph.outs)]
    for i, into in merged.items():
        outs[into] += [edge._replace(src=into) for edge in graph.outs[i]]
    return replace(graph, outs=tuple(map(tuple, outs)))


def _find_equal(graph: PartitionedGraph) -> dict[int, int]:
    """Map each node that equals one before it to that one."""
    merged: dict[int, int] = {}
    available: dict[Hashable, int] = {}
    pending = [sum(not is_next_iteration(graph.nodes[edge.src].op) for edge in edges) for edges in graph.ins]

    def find_successors(i: int) -> list[int]:
        return [] if is_next_iteration(graph.nodes[i].op) else [edge.dst for edge in graph.outs[i]]

    for i in order_by_inputs(pending, find_successors):
        node = graph.nodes[i]
        if node.role != "op" or node.op in PLACEHOLDERS or graph.placed.is_stateful(node.op) or _takes_ref(graph, i):
            continue
        attrs = _describe_attrs(graph, node.origin)
        if attrs is None:
            continue
        taken = [(merged.get(edge.src, edge.src), edge.src_slot, edge.dst_slot) for edge in graph.ins[i]]
        data = tuple(one for one in taken if one[2] != CONTROL)
        control = tuple(sorted(one[0] for one in taken if one[2] == CONTROL))
        first = available.setdefault((node.op, node.device, attrs, data, control), i)
        if first != i:
            merged[i] = first
    return merged


def _takes_ref(graph: PartitionedGraph, number: int) -> bool:
    types = graph.placed.graph.in_types[graph.nodes[number].origin]
    return any(dtype > _REFS for dtype in types)


_REFS = 100  # types of references are larger


def _describe_attrs(graph: PartitionedGraph, origin: int) -> Hashable | None:
    """Return what is equal for nodes of equal attributes, None where that is unknown."""
    attrs = graph.placed.graph.attrs[origin]
    found = tuple((name, _describe_value(attrs[name])) for name in sorted(attrs))
    return None if any(value is None for _, value in found) else found


def _describe_value(value: AttrValue) -> Hashable | None:
    if isinstance(value, TensorInfo):
        is_known = bool(value.content) or value.value is not None
        return (value.dtype, value.shape, value.value, value.content) if is_known else None
    if isinstance(value, tuple):
        found = tuple(_describe_value(one) for one in value)
        return None if None in found else found
    return None if isinstance(value, FuncRef) else value  # functions are called, and calls are seldom equal
