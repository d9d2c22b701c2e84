"""Replace what depends on nothing but constants by constants, before a subgraph runs.

Mirrors tensorflow/core/common_runtime/constant_folding.cc, which GraphOptimizer calls on each device's subgraph after
the partition, whether or not Grappler runs. What is folded is no work of a step, and stays in memory between steps.
"""

from __future__ import annotations

from dataclasses import replace

from simplace.graph.algorithm import order_by_inputs
from simplace.graph.builder import CONTROL
from simplace.graph.dtypes import DataType
from simplace.graph.op_kinds import CONSTANTS, is_control_flow, is_loop_cond
from simplace.partition.graph_partition import LeftOut, PartEdge, PartitionedGraph
from simplace.partition.shapes import TensorSizes

CONSTANT = "Const"
FOLDED: LeftOut = "folded"
_LARGEST = 10 << 20  # bytes of a constant that replaces a tensor (max_constant_size_in_bytes)


def fold_constants(graph: PartitionedGraph) -> PartitionedGraph:
    """Return the graph with a constant for each tensor that is folded, under the name of the node that made it.

    Only control edges lead to it any more: `remove_dead_nodes` takes out what nothing else needs. A large tensor is
    made in each step, with all that it is made of; so is what others wait for by a control edge, beside its constant,
    which has a name of its own (`ReplaceTensorWithConstant` moves data edges alone).
    """
    foldable, sizes = _find_foldable(graph), TensorSizes(graph.placed)
    ops = (i for i in foldable if graph.nodes[i].role == "op" and graph.nodes[i].op not in CONSTANTS)
    chosen = {i for i in ops if _leads_out(graph, i, foldable, sizes)}
    folded = {i for i in chosen if _lies_where_constants_do(graph, i)}
    if not folded:
        return graph
    awaited = sorted(i for i in folded if any(edge.dst_slot == CONTROL for edge in graph.outs[i]))
    beside = {i: len(graph) + k for k, i in enumerate(awaited)}
    replaced = folded.difference(awaited)
    nodes = [node._replace(op=CONSTANT) if i in replaced else node for i, node in enumerate(graph.nodes)]
    outs = [[edge for edge in edges if edge.dst not in replaced or edge.dst_slot == CONTROL] for edges in graph.outs]
    for k, i in enumerate(awaited):
        nodes.append(nodes[i]._replace(name=f"{nodes[i].name}/_{k}__cf__{k}", op=CONSTANT))
        outs.append([edge._replace(src=beside[i]) for edge in outs[i] if edge.dst_slot != CONTROL])
        outs[i] = [edge for edge in outs[i] if edge.dst_slot == CONTROL]
        for edge in (edge for edge in graph.ins[i] if edge.dst_slot == CONTROL):
            outs[edge.src].append(edge._replace(dst=beside[i]))
    waiting = {edge.dst for edges in outs for edge in edges}
    for i in sorted((replaced | set(beside.values())) - waiting):
        source = graph.sources[graph.devices.index(nodes[i].device)]
        outs[source].append(PartEdge(source, CONTROL, i, CONTROL))
    gone = {graph.nodes[i].origin: FOLDED for i in replaced}
    left_out = {**graph.left_out, **gone}
    return replace(graph, nodes=tuple(nodes), outs=tuple(map(tuple, outs)), left_out=left_out)


def is_folded(graph: PartitionedGraph, number: int) -> bool:
    """Return whether a constant stands for what another op computed."""
    node = graph.nodes[number]
    return node.op == CONSTANT and graph.placed.graph.ops[node.origin] not in CONSTANTS


def _find_foldable(graph: PartitionedGraph) -> set[int]:
    """Find the constants, and the nodes that take nothing but what these nodes make.

    Copies between the memories of the device are seen through; one that something else takes, too, is not found.
    """
    found: set[int] = set()
    sends = graph.memory_copies
    receives = {send: receive for receive, send in sends.items()}
    pending = [len(edges) + (i in sends) for i, edges in enumerate(graph.ins)]

    def find_successors(i: int) -> list[int]:
        return [*(edge.dst for edge in graph.outs[i]), *([receives[i]] if i in receives else ())]

    for i in order_by_inputs(pending, find_successors):
        taken = [sends[i]] if i in sends else [edge.src for edge in graph.ins[i] if edge.dst_slot != CONTROL]
        is_copied = i in sends or i in receives
        if graph.nodes[i].op in CONSTANTS or (
            taken and found.issuperset(taken) and (is_copied or _has_no_effect(graph, i))
        ):
            found.add(i)
    for receive, send in sends.items():
        if not found.issuperset(edge.dst for edge in graph.outs[receive]):
            found -= {send, receive}
    return found


def _has_no_effect(graph: PartitionedGraph, number: int) -> bool:
    node = graph.nodes[number]
    if node.role != "op" or is_control_flow(node.op) or is_loop_cond(node.op) or graph.placed.is_stateful(node.op):
        return False
    return _find_host_outputs(graph, number, "CPU") is not None  # constants are folded on the CPU


def _lies_where_constants_do(graph: PartitionedGraph, number: int) -> bool:
    """Return whether all outputs of a node lie in the memory in which a Const of their type has its own.

    On a GPU that of int32 is in host memory, and any other in the GPU's.
    """
    device = graph.placed.devices.by_name[graph.nodes[number].device].type
    types = graph.placed.graph.out_types[graph.nodes[number].origin]
    if device == "CPU":
        return True
    is_on_host = tuple(dtype == DataType.DT_INT32 for dtype in types)
    has_constants = all(graph.placed.host_memory(CONSTANT, device, {"dtype": dtype}) for dtype in types)
    return has_constants and _find_host_outputs(graph, number, device) == is_on_host


def _find_host_outputs(graph: PartitionedGraph, number: int, device: str) -> tuple[bool, ...] | None:
    """Return which outputs of a node's kernel are in host memory, None where there is no such kernel."""
    origin = graph.nodes[number].origin
    found = graph.placed.host_memory(graph.nodes[number].op, device, graph.placed.graph.attrs[origin])
    return None if found is None else tuple(found[1])


def _leads_out(graph: PartitionedGraph, number: int, foldable: set[int], sizes: TensorSizes) -> bool:
    """Return whether nodes that are not foldable take outputs of a node, and all of these are small enough.

    A variant is: only what it refers to may be large.
    """
    slots = {edge.src_slot for edge in graph.outs[number] if edge.dst_slot != CONTROL and edge.dst not in foldable}
    origin = graph.nodes[number].origin
    types = graph.placed.graph.out_types[origin]
    found = [0 if types[slot] == DataType.DT_VARIANT else sizes.size(origin, slot) for slot in slots]
    return bool(found) and all(size is not None and size <= _LARGEST for size in found)
