"""Replace what depends on nothing but constants by constants, before a subgraph runs.

Mirrors tensorflow/core/common_runtime/constant_folding.cc, which GraphOptimizer calls on each device's subgraph after
the partition, whether or not Grappler runs. What is folded is no work of a step, and stays in memory between steps.
"""

from __future__ import annotations

from dataclasses import replace

from simplace.graph.algorithm import order_by_inputs
from simplace.graph.builder import CONTROL
from simplace.graph.op_kinds import CONSTANTS, is_control_flow, is_loop_cond
from simplace.partition.graph_partition import PartEdge, PartitionedGraph
from simplace.partition.shapes import TensorSizes

CONSTANT = "Const"
_LARGEST = 10 << 20  # bytes of a constant that replaces a tensor (max_constant_size_in_bytes)


def fold_constants(graph: PartitionedGraph) -> PartitionedGraph:
    """Return the graph with a constant for each tensor that is folded, under the name of the node that made it.

    Only control edges lead to it any more: `remove_dead_nodes` takes out what nothing else needs. A large tensor is
    made in each step, with all that it is made of.
    """
    foldable, sizes = _find_foldable(graph), TensorSizes(graph.placed)
    folded = {i for i in foldable if graph.nodes[i].op not in CONSTANTS and _leads_out(graph, i, foldable, sizes)}
    if not folded:
        return graph
    nodes = tuple(replace(node, op=CONSTANT) if i in folded else node for i, node in enumerate(graph.nodes))
    outs = [[edge for edge in edges if edge.dst not in folded or edge.dst_slot == CONTROL] for edges in graph.outs]
    waiting = {edge.dst for edges in outs for edge in edges}
    for i in sorted(folded - waiting):
        source = graph.sources[graph.devices.index(graph.nodes[i].device)]
        outs[source].append(PartEdge(source, CONTROL, i, CONTROL))
    return replace(graph, nodes=nodes, outs=tuple(map(tuple, outs)))


def is_folded(graph: PartitionedGraph, number: int) -> bool:
    """Return whether a constant stands for what another op computed."""
    node = graph.nodes[number]
    return node.op == CONSTANT and graph.placed.graph.ops[node.origin] not in CONSTANTS


def _find_foldable(graph: PartitionedGraph) -> set[int]:
    """Find the constants, and the nodes that take nothing but what these nodes make."""
    found: set[int] = set()
    pending = [len(edges) for edges in graph.ins]
    for i in order_by_inputs(pending, lambda i: [edge.dst for edge in graph.outs[i]]):
        taken = [edge.src for edge in graph.ins[i] if edge.dst_slot != CONTROL]
        if graph.nodes[i].op in CONSTANTS or (taken and found.issuperset(taken) and _has_no_effect(graph, i)):
            found.add(i)
    return found


def _has_no_effect(graph: PartitionedGraph, number: int) -> bool:
    node = graph.nodes[number]
    is_flow = is_control_flow(node.op) or is_loop_cond(node.op)
    return node.role == "op" and not is_flow and not graph.placed.is_stateful(node.op)


def _leads_out(graph: PartitionedGraph, number: int, foldable: set[int], sizes: TensorSizes) -> bool:
    """Return whether nodes that are not foldable take outputs of a node, and all of these are small enough."""
    slots = {edge.src_slot for edge in graph.outs[number] if edge.dst_slot != CONTROL and edge.dst not in foldable}
    found = [sizes.size(graph.nodes[number].origin, slot) for slot in slots]
    return bool(found) and all(size is not None and size <= _LARGEST for size in found)
