"""Remove the nodes of each device's subgraph that nothing needs, before it runs.

Mirrors `RemoveDeadNodes` of tensorflow/core/common_runtime/function_utils.cc, which GraphOptimizer calls on each
subgraph after the partition: what is stateful stays (arguments, results, sends and receives are), control flow, and
what leads to the sink, as the targets of a session's run do.
Copies between the memories of one device come only later, for what is left.
"""

from __future__ import annotations

from dataclasses import replace

from simplace.graph.algorithm import reverse_reachable
from simplace.graph.op_kinds import RETVALS, is_control_flow, is_loop_cond
from simplace.partition.graph_partition import LeftOut, PartEdge, PartitionedGraph


def remove_dead_nodes(
    graph: PartitionedGraph, why: LeftOut = "unused", *, keeps_memory_copies: bool = True
) -> PartitionedGraph:
    """Return the part of a function's graph, or of a run's, that has an effect; copies between memories count as one.

    `why` is the reason that is recorded for the ops that are left out.

    A graph that is not run as a whole, such as one of a file, stays as it is.
    """
    if not is_run_as_a_whole(graph):
        return graph
    sends = {} if keeps_memory_copies else graph.memory_copies
    moved = {*sends, *sends.values()}
    needed = reverse_reachable(
        (i for i in range(len(graph)) if i not in moved and _has_effect(graph, i)),
        lambda i: [*(edge.src for edge in graph.ins[i]), *([sends[i]] if i in sends else ())],
    )
    return graph if len(needed) == len(graph) else _keep_nodes(graph, needed, why)


def is_run_as_a_whole(graph: PartitionedGraph) -> bool:
    """Return whether a graph is a function's or a run's: of a graph without results nobody knows what is needed."""
    return graph.placed.program.is_called or bool(graph.targets) or not RETVALS.isdisjoint(graph.placed.graph.ops)


def _has_effect(graph: PartitionedGraph, number: int) -> bool:
    node = graph.nodes[number]
    return (
        node.role != "op"
        or is_control_flow(node.op)
        or is_loop_cond(node.op)
        or node.op in RETVALS
        or node.name in graph.targets
        or graph.placed.is_stateful(node.op)
    )


def _keep_nodes(graph: PartitionedGraph, kept: set[int], why: LeftOut) -> PartitionedGraph:
    number = {old: new for new, old in enumerate(sorted(kept))}
    outs = tuple(
        tuple(
            PartEdge(number[old], edge.src_slot, number[edge.dst], edge.dst_slot)
            for edge in graph.outs[old]
            if edge.dst in number
        )
        for old in number
    )
    receiver = {number[send]: number[receive] for send, receive in graph.receiver.items() if receive in number}
    nodes = tuple(graph.nodes[old] for old in number)
    gone = {node.origin: why for i, node in enumerate(graph.nodes) if i not in number and node.role == "op"}
    return replace(graph, nodes=nodes, outs=outs, receiver=receiver, left_out={**graph.left_out, **gone})
