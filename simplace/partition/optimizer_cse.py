"""Merge the nodes that compute the same, before a subgraph runs.

Mirrors tensorflow/core/graph/optimizer_cse.cc, which GraphOptimizer calls on each device's subgraph after the
partition, whether or not Grappler runs.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

from simplace.graph.algorithm import order_by_postorder
from simplace.graph.builder import CONTROL
from simplace.graph.node_def import AttrValue, FuncRef, TensorInfo
from simplace.graph.op_kinds import PLACEHOLDERS
from simplace.partition.graph_partition import PartEdge, PartitionedGraph


def merge_equal_nodes(graph: PartitionedGraph, order: Sequence[int]) -> PartitionedGraph:
    """Return the graph with the edges of each node that equals one before it in an order going out of that one.

    What has been merged leads nowhere: `remove_dead_nodes` takes it out.
    """
    merged = _find_equal(graph, order)
    if not merged:
        return graph
    outs: list[list[PartEdge]] = [[] if i in merged else list(edges) for i, edges in enumerate(graph.outs)]
    for i, into in merged.items():
        outs[into] += [edge._replace(src=into) for edge in graph.outs[i]]
    return replace(graph, outs=tuple(map(tuple, outs)))


def _find_equal(graph: PartitionedGraph, order: Sequence[int]) -> dict[int, int]:
    """Map each node that equals one before it to that one.

    There is one candidate for what has equal attributes and inputs, the first one: where that waits for others, a node
    is not merged, nor is another one with it.
    """
    merged: dict[int, int] = {}
    available: dict[Hashable, tuple[int, tuple[int, ...]]] = {}
    for i in order:
        node = graph.nodes[i]
        if node.role != "op" or node.op in PLACEHOLDERS or graph.placed.is_stateful(node.op) or _takes_ref(graph, i):
            continue
        attrs = None if node.op != graph.placed.graph.ops[node.origin] else _describe_attrs(graph, node.origin)
        if attrs is None:  # nothing tells the value, as of a constant that stands for what was folded
            continue
        taken = [(merged.get(edge.src, edge.src), edge.src_slot, edge.dst_slot) for edge in graph.ins[i]]
        data = [one[:2] for one in taken if one[2] != CONTROL]
        if graph.placed.is_commutative(node.op):
            data.sort()
        control = tuple(sorted(one[0] for one in taken if one[2] == CONTROL))
        first, awaited = available.setdefault((node.op, node.device, attrs, tuple(data)), (i, control))
        if first != i and awaited == control:
            merged[i] = first
    return merged


def order_nodes(graph: PartitionedGraph) -> list[int]:
    """Order the nodes as TensorFlow takes them; a copy between memories, which it adds later, leads to its receive."""
    receives = {send: receive for receive, send in graph.memory_copies.items()}

    def list_successors(i: int) -> list[int]:
        found = {edge.dst for edge in graph.outs[i]}
        return sorted(found | {receives[i]} if i in receives else found)

    starts = [i for i, edges in enumerate(graph.ins) if not edges and i not in graph.memory_copies]
    return order_by_postorder(starts, list_successors)


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
