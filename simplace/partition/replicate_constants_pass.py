"""Replicate small constants: each CPU that reads one has its own copy.

Mirrors tensorflow/core/common_runtime/replicate_constants_pass.cc, which runs after placement. A GPU's consumers read
the copy of the first CPU of their task.
"""

from __future__ import annotations

from math import prod

from simplace.devices.device_name import DeviceName
from simplace.graph.builder import CONTROL
from simplace.graph.node_def import TensorInfo
from simplace.graph.op_kinds import is_constant
from simplace.partition.rewritten_graph import Draft, Edge
from simplace.program.placed_graph import PlacedGraph

_MOST_ELEMENTS = 16
REPLICA = "/replicate/_"


def may_apply(placed: PlacedGraph) -> bool:
    """Return whether there is more than one CPU, so that any constant could be replicated."""
    return sum(device.type == "CPU" for device in placed.devices) > 1


def replicate_constants(draft: Draft) -> None:
    """Replace each constant in question by one a CPU that it is read from."""
    out_edges: dict[int, list[Edge]] = {}
    into: dict[int, list[Edge]] = {}
    for edge in draft.edges:
        out_edges.setdefault(edge[0], []).append(edge)
        into.setdefault(edge[2], []).append(edge)
    for node in draft.op_ids:
        outs = out_edges.get(node, [])
        if len(outs) > 1 and _is_small_on_cpu(draft, node):
            by_device = _by_reader(draft, outs)
            if len(by_device) > 1:
                _replicate_to_each_device(draft, node, by_device, into.get(node, []))


def _is_small_on_cpu(draft: Draft, node: int) -> bool:
    if not is_constant(draft.ops[node]):
        return False
    value, device = draft.attrs[node].get("value"), DeviceName.parse(draft.devices[node])
    if device is None or device.type != "CPU" or not isinstance(value, TensorInfo):
        return False
    return value.shape is not None and prod(value.shape) <= _MOST_ELEMENTS


def _by_reader(draft: Draft, outs: list[Edge]) -> dict[str, list[Edge]]:
    """Group the edges out of a constant by the CPU that is to have a copy for them; {} where one is a control edge."""
    found: dict[str, list[Edge]] = {}
    for edge in outs:
        if edge[1] == CONTROL:
            return {}
        device = DeviceName.parse(draft.devices[edge[2]])
        assert device is not None, "a placed node has a device"
        home = device if device.type == "CPU" else device._replace(type="CPU", id=0)
        found.setdefault(str(home), []).append(edge)
    return dict(sorted(found.items()))


def _replicate_to_each_device(draft: Draft, node: int, by_device: dict[str, list[Edge]], into: list[Edge]) -> None:
    before = dict.fromkeys(edge[0] for edge in into)
    for i, (device, outs) in enumerate(by_device.items()):
        name = f"{draft.names[node]}{REPLICA}{i}"
        copy = draft.add_node(name, "Const", device, draft.attrs[node], ((), draft.out_types[node]), like=node)
        for edge in outs:
            draft.add_edge(copy, edge[1], edge[2], edge[3])
        for source in before:
            draft.add_control_edge(source, copy)
    draft.remove_node(node)
