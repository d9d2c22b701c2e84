"""Replace what depends on nothing but constants by constants, before a subgraph runs.

Mirrors tensorflow/core/common_runtime/constant_folding.cc, which GraphOptimizer calls on each device's subgraph after
the partition, whether or not Grappler runs. What is folded is no work of a step, and stays in memory between steps.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from simplace.graph.algorithm import order_by_inputs
from simplace.graph.builder import CONTROL
from simplace.graph.dtypes import DataType
from simplace.graph.op_kinds import CONSTANTS, PLACEHOLDERS, is_control_flow, is_loop_cond
from simplace.partition.graph_partition import LeftOut, PartEdge, PartitionedGraph
from simplace.partition.shapes import TensorSizes

CONSTANT = "Const"
FOLDED: LeftOut = "folded"
# kBlockList, IsFakeParam; a placeholder's kernel fails
_NEVER = PLACEHOLDERS | {"StatelessRandomGetKeyCounter", "FakeParam"}
_LARGEST = 10 << 20  # bytes of a constant that replaces a tensor (max_constant_size_in_bytes)


def fold_constants(graph: PartitionedGraph, unfolded: int = 0) -> PartitionedGraph:
    """Return the graph with a constant for each tensor that is folded, under the name of the node that made it.

    They come after all other nodes, in the order of their names. Only control edges lead to them: `remove_dead_nodes`
    takes out what nothing else needs, the nodes that they stand for among that. A large tensor is
    made in each step, with all that it is made of, and so is one whose first dimension is `unfolded` (0: none). What
    others wait for by a control edge runs beside its constant, which has a name of its own (`ReplaceTensorWithConstant`
    moves data edges alone). A constant waits for all that its node waited for, and what that was made of: in the body
    of a loop it is there in each iteration.
    """
    foldable, sizes = _find_foldable(graph), TensorSizes(graph.placed)
    ops = (i for i in foldable if graph.nodes[i].role == "op" and graph.nodes[i].op not in CONSTANTS)
    chosen = {i for i in ops if _leads_out(graph, i, foldable, sizes, unfolded)}
    folded = sorted(i for i in chosen if _lies_where_constants_do(graph, i))
    if not folded:
        return graph
    folded.sort(key=lambda i: graph.nodes[i].name)
    constant = {i: len(graph) + k for k, i in enumerate(folded)}
    nodes, outs = list(graph.nodes), [list(edges) for edges in graph.outs]
    replaced = set()
    for k, i in enumerate(folded):
        outs.append([edge._replace(src=constant[i]) for edge in outs[i] if edge.dst_slot != CONTROL])
        outs[i] = [edge for edge in outs[i] if edge.dst_slot == CONTROL]
        name = nodes[i].name
        if outs[i]:
            name = f"{name}/_{k}__cf__{k}"
        else:
            replaced.add(i)
        nodes.append(nodes[i]._replace(name=name, op=CONSTANT))
    before = _find_awaited(graph, foldable)
    for i in folded:
        source = graph.sources[graph.devices.index(nodes[i].device)]
        for src in sorted(before[i]) or [source]:
            outs[src].append(PartEdge(src, CONTROL, constant[i], CONTROL))
    gone = {graph.nodes[i].origin: FOLDED for i in replaced}
    left_out = {**graph.left_out, **gone}
    return replace(graph, nodes=tuple(nodes), outs=tuple(map(tuple, outs)), left_out=left_out)


def is_folded(graph: PartitionedGraph, number: int) -> bool:
    """Return whether a constant stands for what another op computed."""
    node = graph.nodes[number]
    return node.op == CONSTANT and graph.placed.graph.ops[node.origin] not in CONSTANTS


def _find_foldable(graph: PartitionedGraph) -> set[int]:
    """Find the constants, and the nodes that take nothing but what these nodes make; they may wait for any.

    What takes nothing at all is such a node, too, a NoOp for one: what waits for it waits for what it waits for.

    Copies between the memories of the device are seen through; one that something else takes, too, is not found.
    """
    found: set[int] = set()
    sends = graph.memory_copies
    moved = {*sends, *sends.values()}
    taken = _list_sources(graph, with_control=False)
    for i in _order_by_sources(taken, range(len(graph))):
        if graph.nodes[i].op in CONSTANTS or (found.issuperset(taken[i]) and (i in moved or _has_no_effect(graph, i))):
            found.add(i)
    for receive, send in sends.items():
        if not found.issuperset(edge.dst for edge in graph.outs[receive]):
            found -= {send, receive}
    return found


def _find_awaited(graph: PartitionedGraph, foldable: set[int]) -> dict[int, set[int]]:
    """Map each foldable node to the others that it waits for, or that what it is made of does (`control_deps`)."""
    sources = _list_sources(graph, with_control=True)
    awaited: dict[int, set[int]] = {}
    for i in _order_by_sources(sources, foldable):
        found = awaited[i] = {src for src in sources[i] if src not in foldable and graph.nodes[src].role != "source"}
        for src in foldable.intersection(sources[i]):
            found |= awaited[src]
    return awaited


def _list_sources(graph: PartitionedGraph, *, with_control: bool) -> list[list[int]]:
    """List the nodes that each node takes something from; a copy's receive takes from its send."""
    sources = [[edge.src for edge in edges if with_control or edge.dst_slot != CONTROL] for edges in graph.ins]
    for receive, send in graph.memory_copies.items():
        sources[receive].append(send)
    return sources


def _order_by_sources(sources: Sequence[Sequence[int]], nodes: Collection[int]) -> list[int]:
    """Order nodes so that what each takes from comes before it, of these nodes; what a cycle leads to is left out."""
    pending = [-1] * len(sources)
    takers: list[list[int]] = [[] for _ in sources]
    for i in nodes:
        inside = [src for src in sources[i] if src in nodes]
        pending[i] = len(inside)
        for src in inside:
            takers[src].append(i)
    return order_by_inputs(pending, takers.__getitem__)


def _has_no_effect(graph: PartitionedGraph, number: int) -> bool:
    node = graph.nodes[number]
    if node.role != "op" or is_control_flow(node.op) or is_loop_cond(node.op) or node.op in _NEVER:
        return False
    if graph.placed.is_stateful(node.op):
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


def _leads_out(graph: PartitionedGraph, number: int, foldable: set[int], sizes: TensorSizes, unfolded: int) -> bool:
    """Return whether nodes that are not foldable take outputs of a node, and each of these may be folded.

    None may be too large, or have `unfolded` as its first dimension, as far as that is known.

    A variant is small: only what it refers to may be large. So is, as a rule, what constants lead to without telling
    its size, such as the axes that BroadcastGradientArgs finds.
    """
    slots = {edge.src_slot for edge in graph.outs[number] if edge.dst_slot != CONTROL and edge.dst not in foldable}
    origin = graph.nodes[number].origin
    types = graph.placed.graph.out_types[origin]
    found = [0 if types[slot] == DataType.DT_VARIANT else sizes.size(origin, slot) or 0 for slot in slots]
    if unfolded and any((sizes.shape(origin, slot) or ())[:1] == (unfolded,) for slot in slots):
        return False
    return bool(found) and max(found) <= _LARGEST
