"""Replace the ops of NCCL's reduce and broadcast by one op a device, which talk to each other past TensorFlow's copies.

Mirrors tensorflow/core/nccl/nccl_rewrite.cc, which runs right after placement (a CUDA build has it). Where TensorFlow
refuses a reduction, because none of its inputs is on its own device, the op stays here.
"""

from __future__ import annotations

from typing import Any

from simplace.graph.builder import CONTROL
from simplace.graph.dtypes import DataType
from simplace.graph.node_def import ShapeAttr, TensorInfo
from simplace.partition.rewritten_graph import Draft, Edge
from simplace.program.placed_graph import PlacedGraph

_REDUCE, _BROADCAST = "NcclReduce", "NcclBroadcast"
_SINK = 1
_INT32 = DataType.DT_INT32


def may_apply(placed: PlacedGraph) -> bool:
    """Return whether the graph has an op in question."""
    return not {_REDUCE, _BROADCAST}.isdisjoint(placed.graph.ops)


def replace_nccl(draft: Draft) -> None:
    """Replace them all, by id."""
    for node in draft.op_ids:
        if draft.ops[node] == _REDUCE:
            _replace_reduce(draft, node)
        elif draft.ops[node] == _BROADCAST:
            _replace_broadcast(draft, node)


def _replace_reduce(draft: Draft, node: int) -> None:
    into, outs = _edges_of(draft, node)
    data = [edge for edge in into if edge[3] != CONTROL]
    own = next((edge for edge in data if draft.devices[edge[0]] == draft.devices[node]), None)
    if own is None:
        return
    types = draft.out_types[node]
    attrs = _make_attrs(draft, node, len(data), "reduction")
    before = [edge[0] for edge in into if edge[3] == CONTROL]
    for i, edge in enumerate((edge for edge in data if edge is not own), 1):
        name, device = f"{draft.names[node]}Send_{i}", draft.devices[edge[0]]
        send = draft.add_node(name, "_NcclReduceSend", device, attrs, (types, ()), near=node)
        _run_after(draft, before, send)
        draft.add_edge(edge[0], 0, send, 0)
        for end in dict.fromkeys(out[2] for out in outs):  # or nothing would make the send run
            draft.add_control_edge(send, end)
    name, device = f"{draft.names[node]}Recv", draft.devices[node]
    receive = draft.add_node(name, "_NcclReduceRecv", device, attrs, (types, types), near=node)
    _run_after(draft, before, receive)
    draft.add_edge(own[0], 0, receive, 0)
    draft.remove_node(node)
    for _, slot, end, end_slot in outs:
        draft.add_edge(receive, slot, end, end_slot)


def _replace_broadcast(draft: Draft, node: int) -> None:
    into, outs = _edges_of(draft, node)
    home = draft.devices[node]
    by_device: dict[str, list[Edge]] = {}
    for edge in outs:
        by_device.setdefault(home if edge[1] == CONTROL else draft.devices[edge[2]], []).append(edge)
    source, source_slot = next((edge[0], edge[1]) for edge in into if edge[3] == 0)
    draft.remove_node(node)
    if len(by_device) <= 1:
        for _, slot, end, end_slot in outs:
            draft.add_edge(source, CONTROL if slot == CONTROL else source_slot, end, end_slot)
        return
    types = draft.out_types[node]
    attrs = _make_attrs(draft, node, len(by_device))
    before = [edge[0] for edge in into if edge[3] == CONTROL]
    send = draft.add_node(f"{draft.names[node]}Send", "_NcclBroadcastSend", home, attrs, (types, ()), near=node)
    _run_after(draft, before, send)
    draft.add_edge(source, source_slot, send, 0)
    for _, slot, end, end_slot in by_device.get(home, ()):
        if slot != CONTROL:
            draft.add_edge(source, source_slot, end, end_slot)
        draft.add_control_edge(send, end)
    for i, (device, edges) in enumerate(by_device.items()):
        if device != home:
            name = f"{draft.names[node]}Recv_{i}"
            receive = draft.add_node(name, "_NcclBroadcastRecv", device, attrs, ((_INT32,), types), near=node)
            draft.add_edge(_add_shape_const(draft, node, f"{draft.names[source]}/Shape{i}", device), 0, receive, 0)
            for _, _, end, end_slot in edges:
                draft.add_edge(receive, 0, end, end_slot)


def _add_shape_const(draft: Draft, node: int, name: str, device: str) -> int:
    """Make the constant shape of what is broadcast; TensorFlow takes an unknown rank for 0 here."""
    stated = draft.attrs[node].get("shape")
    rank = len(stated.dims or ()) if isinstance(stated, ShapeAttr) else 0
    attrs = {"dtype": _INT32, "value": TensorInfo(_INT32, (rank,))}
    return draft.add_node(name, "Const", device, attrs, ((), (_INT32,)), near=node)


def _run_after(draft: Draft, before: list[int], node: int) -> None:
    for source in before:
        draft.add_control_edge(source, node)


def _make_attrs(draft: Draft, node: int, num_devices: int, *copied: str) -> dict[str, Any]:
    own = draft.attrs[node]
    shared = {"num_devices": num_devices, "shared_name": draft.names[node].encode(), "T": own["T"]}
    return {**shared, **{key: own[key] for key in copied}}


def _edges_of(draft: Draft, node: int) -> tuple[list[Edge], list[Edge]]:
    """List the edges into and out of a node."""
    live = [edge for edge in draft.edges if not {edge[0], edge[2]} & draft.removed and edge[2] != _SINK]
    return [edge for edge in live if edge[2] == node], [edge for edge in live if edge[0] == node]
