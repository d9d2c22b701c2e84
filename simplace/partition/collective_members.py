"""Join the members of each collective of a placed graph into one transfer, with its bytes and participants.

The members of a collective are the nodes with one group key and one instance key (tensorflow/core/kernels/
collective_ops.cc), or with one shared name (core/kernels/nccl_ops.cc). Keys that only a run knows, such as those that
tf.distribute hands to each replica as an argument of its own, are matched by position: replicas are traced alike, so
the first collective of one device goes with the first of every other one, and so on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from simplace.graph.builder import CONTROL
from simplace.graph.graph import Graph
from simplace.graph.node_def import TensorInfo
from simplace.graph.op_kinds import COLLECTIVE_KEY_INPUTS, CONTROL_FLOW, IDENTITIES, is_constant
from simplace.partition.copied_collectives import find_joined
from simplace.partition.shapes import TensorSizes
from simplace.partition.transfers import CopyColumns
from simplace.program.placed_graph import PlacedGraph

CollectiveKind = Literal["all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "reduce"]

_KINDS: Mapping[str, CollectiveKind] = {
    "CollectiveReduce": "all-reduce",
    "CollectiveReduceV2": "all-reduce",
    "CollectiveReduceV3": "all-reduce",
    "NcclAllReduce": "all-reduce",
    "CollectiveGather": "all-gather",
    "CollectiveGatherV2": "all-gather",
    "CollectiveReduceScatterV2": "reduce-scatter",
    "CollectiveAllToAllV2": "all-to-all",
    "CollectiveAllToAllV3": "all-to-all",
    "CollectiveBcastSend": "broadcast",
    "CollectiveBcastRecv": "broadcast",
    "CollectiveBcastSendV2": "broadcast",
    "CollectiveBcastRecvV2": "broadcast",
    "_NcclBroadcastSend": "broadcast",
    "_NcclBroadcastRecv": "broadcast",
    "_NcclReduceSend": "reduce",
    "_NcclReduceRecv": "reduce",
}
is_collective = _KINDS.__contains__

_COMMUNICATOR, _INITIALIZER = 1, "CollectiveInitializeCommunicator"  # of the third version
_HANDS_ON = IDENTITIES | CONTROL_FLOW
_BY_PLACE = "by place"  # instead of an instance key that only a run knows


@dataclass(frozen=True, slots=True)
class Collective:
    """Record of one collective: `members` are its nodes on `devices` (full names), one each, in the devices' order.

    `size` is what each participant puts in, in bytes (None: unknown). `participants` counts those in other programs,
    too. `copies` are the numbers of the copies that it is made of: none for collective ops; where a sum or a
    concatenation goes to all devices whose tensors it joins, the member is that one node.
    """

    kind: CollectiveKind
    members: tuple[int, ...]
    devices: tuple[str, ...]
    participants: int
    dtype: int
    size: int | None
    copies: tuple[int, ...] = ()


def find_collectives(placed: PlacedGraph, copies: CopyColumns) -> tuple[Collective, ...]:
    """Find the collectives of a graph as it is partitioned: collective ops by first member, then those by copies."""
    sizes = TensorSizes(placed)
    by_ops = [] if _KINDS.keys().isdisjoint(placed.graph.ops) else _join_members(placed, sizes)
    by_copies = [
        Collective(
            one.kind,
            (one.node,),
            one.devices,
            len(one.devices),
            placed.graph.out_types[one.node][0],
            next((size for size in (sizes.size(*leaf) for leaf in one.leaves) if size is not None), None),
            one.copies,
        )
        for one in find_joined(placed, copies)
    ]
    return (*by_ops, *by_copies)


def with_origins(found: Sequence[Collective], origin: Sequence[int]) -> tuple[Collective, ...]:
    """Return collectives of a rewritten graph in terms of the graph that it came from."""
    return tuple(replace(one, members=tuple(dict.fromkeys(origin[i] for i in one.members))) for one in found)


def _join_members(placed: PlacedGraph, sizes: TensorSizes) -> list[Collective]:
    graph, devices = placed.graph, placed.device_of
    place = {device.name: i for i, device in enumerate(placed.devices)}
    groups: dict[tuple[object, ...], list[int]] = {}
    count: Counter[tuple[object, ...]] = Counter()
    for node, op in enumerate(graph.ops):
        if op in _KINDS:
            keys = _find_keys(graph, node)
            number = count[keys, devices[node]] if _BY_PLACE in keys else 0
            count[keys, devices[node]] += 1
            groups.setdefault((*keys, number), []).append(node)
    found = []
    for members in groups.values():
        members.sort(key=lambda node: place[devices[node]])
        size = max((_count_participants(graph, node) for node in members), default=0)
        ends = tuple(devices[node] for node in members)
        first, kind = members[0], _KINDS[graph.ops[members[0]]]
        bytes_each = next((s for s in (_measure_input(graph, sizes, m) for m in members) if s is not None), None)
        dtype = graph.attrs[first]["T"]
        found.append(Collective(kind, tuple(members), ends, max(size, len(members)), dtype, bytes_each))
    return found


def _find_keys(graph: Graph, node: int) -> tuple[object, ...]:
    """Return what all members of a node's collective have in common, and most other nodes have not."""
    op, attrs = graph.ops[node], graph.attrs[node]
    kind = (_KINDS[op], attrs["T"], attrs.get("merge_op", attrs.get("reduction")), attrs.get("final_op"))
    if "Nccl" in op:
        return (*kind, attrs["shared_name"])
    if op in COLLECTIVE_KEY_INPUTS:
        _, group, instance = (_read_constant(graph, node, slot) for slot in COLLECTIVE_KEY_INPUTS[op])
        return (*kind, group, _BY_PLACE if instance is None else instance)
    if "instance_key" in attrs:
        return (*kind, attrs["group_key"], attrs["instance_key"])
    maker = _trace_input(graph, node, _COMMUNICATOR)
    group = _read_constant(graph, maker, 0) if graph.ops[maker] == _INITIALIZER else None
    return (*kind, group, _BY_PLACE)


def _count_participants(graph: Graph, node: int) -> int:
    """Return the group size of a member, 0 where only a run knows it."""
    op, attrs = graph.ops[node], graph.attrs[node]
    if op in COLLECTIVE_KEY_INPUTS:
        return _read_constant(graph, node, COLLECTIVE_KEY_INPUTS[op][0]) or 0
    if "group_size" in attrs or "num_devices" in attrs:
        return int(attrs.get("group_size", attrs.get("num_devices", 0)))
    maker = _trace_input(graph, node, _COMMUNICATOR)
    return (_read_constant(graph, maker, 2) or 0) if graph.ops[maker] == _INITIALIZER else 0


def _measure_input(graph: Graph, sizes: TensorSizes, node: int) -> int | None:
    """Return the bytes that a member puts in; one that only receives takes as many."""
    if "Recv" in graph.ops[node] and graph.ops[node] != "_NcclReduceRecv":
        return sizes.size(node, 0)
    edge = _find_input(graph, node, 0)
    found = None if edge is None else sizes.size(graph.edge_src[edge], graph.edge_src_slot[edge])
    is_reduction = _KINDS[graph.ops[node]] in ("all-reduce", "reduce") and bool(graph.out_types[node])
    return sizes.size(node, 0) if found is None and is_reduction else found


def _read_constant(graph: Graph, node: int, slot: int) -> int | None:
    """Return the constant that an input has, None where only a run knows."""
    source = _trace_input(graph, node, slot)
    value = graph.attrs[source].get("value") if is_constant(graph.ops[source]) else None
    return value.value if isinstance(value, TensorInfo) else None


def _trace_input(graph: Graph, node: int, slot: int) -> int:
    """Return the node that an input comes from, past identities and what carries it into loops and branches."""
    at, wanted, seen = node, slot, set[int]()
    while at not in seen:
        seen.add(at)
        edge = _find_input(graph, at, wanted)
        if edge is None:
            break
        at, wanted = graph.edge_src[edge], 0
        if graph.ops[at] not in _HANDS_ON:
            break
    return at


def _find_input(graph: Graph, node: int, slot: int) -> int | None:
    found = (e for e in graph.in_edges[node] if graph.edge_dst_slot[e] == slot and graph.edge_src_slot[e] != CONTROL)
    return next(found, None)
