"""Replicate what is placed on a composite device: one node for each of the devices that it stands for.

Mirrors tensorflow/core/common_runtime/replicate_per_replica_nodes.cc, which runs last before the graph is partitioned.
What TensorFlow refuses, another node than an argument that is read elsewhere, reads the first one's output here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from simplace.devices.device_set import COMPOSITE
from simplace.graph.builder import CONTROL
from simplace.partition.rewritten_graph import Draft, Edge
from simplace.program.placed_graph import PlacedGraph


def may_apply(placed: PlacedGraph) -> bool:
    """Return whether there is a composite device."""
    return any(device.type == COMPOSITE for device in placed.devices)


def replicate_nodes(draft: Draft) -> None:
    """Replace the nodes on each composite device by one of each on each of its devices."""
    for device in draft.placed.devices:
        nodes = [node for node in draft.op_ids if draft.devices[node] == device.name and node not in draft.removed]
        if device.members[1:]:
            replicas = {node: _replicate(draft, node, device.members) for node in nodes}
            for edge in tuple(draft.edges):
                _replicate_edge(draft, edge, replicas)
            for node in nodes:
                draft.remove_node(node)
        elif device.members:
            for node in nodes:
                draft.devices[node] = device.members[0]


def _replicate(draft: Draft, node: int, devices: Sequence[str]) -> list[int]:
    types, attrs = (draft.in_types[node], draft.out_types[node]), draft.attrs[node]
    name, op = draft.names[node], draft.ops[node]
    return [
        draft.add_node(f"{name}/R{i}", op, device, {**attrs, "sub_index": i}, types, like=node)
        for i, device in enumerate(devices)
    ]


def _replicate_edge(draft: Draft, edge: Edge, replicas: Mapping[int, list[int]]) -> None:
    """Add the edges that take the place of one that begins or ends at a node with replicas."""
    source, slot, end, end_slot = edge
    if source in replicas and end in replicas:
        ends = list(zip(replicas[source], replicas[end], strict=True))
    elif end in replicas:
        ends = [(source, each) for each in replicas[end]]
    elif source not in replicas:
        ends = []
    elif slot == CONTROL:
        ends = [(each, end) for each in replicas[source]]
    else:
        there = (each for each in replicas[source] if draft.devices[each] == draft.devices[end])
        ends = [(next(there, replicas[source][0]), end)]
    for start, stop in ends:
        draft.add_edge(start, slot, stop, end_slot)
