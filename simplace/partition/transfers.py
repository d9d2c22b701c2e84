"""The copies between devices that a placement makes necessary.

Mirrors the sends and receives of tensorflow/core/graph/graph_partition.cc: one transfer per tensor, destination
device and memory, shared by its consumers there; a control edge across devices sends an empty tensor. A reference is
sent anew to each consumer, since it is read at that moment. Where a graph is cut by task, a tensor is sent once to a
task, to the device of its first consumer there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from simplace.graph import dtypes
from simplace.graph.build import CONTROL
from simplace.graph.dtypes import REF_OFFSET, DataType
from simplace.graph.node_def import Shape
from simplace.kernels.search import memory_types
from simplace.partition.shapes import TensorSizes
from simplace.partition.tasks import Location
from simplace.placement.placement import Placement

_SOURCE = 0
_SHARED = -1


@dataclass(frozen=True, slots=True)
class Copy:
    """Describe one transfer: full device names, `size` in bytes (None: unknown), consumers as node ids by id.

    `slot` is the producer's output, -1 for a control edge. Memories are "device" or "host".
    """

    producer: int
    slot: int
    tensor: str
    source: str
    target: str
    dtype: str
    shape: Shape
    size: int | None
    consumers: tuple[int, ...]
    source_memory: str = "device"
    target_memory: str = "device"

    @property
    def is_control(self) -> bool:
        """Say whether only the order is sent."""
        return self.slot == CONTROL


class MemoryTypes:
    """Say which inputs and outputs of placed nodes live in host memory though their node runs on a device."""

    def __init__(self, placement: Placement) -> None:
        self._graph = placement.graph
        self._table = placement.groups.support.table
        self._devices = placement.devices.by_name
        self._placement = placement
        self._known: dict[tuple[str, int, str], tuple[tuple[bool, ...], tuple[bool, ...]]] = {}

    def of(self, node: int) -> tuple[tuple[bool, ...], tuple[bool, ...]]:
        """Return (inputs in host memory, outputs in host memory)."""
        graph = self._graph
        op, attrs, device = graph.ops[node], graph.attrs[node], self._placement.device(node)
        key = (op, id(attrs), device)  # the graph keeps its attributes, and nodes share them
        found = self._known.get(key)
        if found is None:
            on = self._devices.get(device)
            if on is None or self._table.op(op) is None:
                return _by_dtype(graph.in_types[node]), _by_dtype(graph.out_types[node])
            found = self._known[key] = memory_types(self._table, op, on.type, attrs)
        return found


@dataclass(frozen=True, slots=True)
class Transfers:
    """Hold the transfers of a graph; `of_edge` maps the edges that need one to its number."""

    copies: tuple[Copy, ...]
    of_edge: Mapping[int, int]


def transfers(placement: Placement, location: Location = str) -> Transfers:
    """Find the transfers of a graph as it is, without rewriting it first; ids are those of its own nodes.

    `location` says of a device which subgraph its nodes go to: nodes of one subgraph on different devices send nothing.
    """
    graph = placement.graph
    memory = MemoryTypes(placement)
    cpus = {device.name for device in placement.devices if device.type == "CPU"}
    devices = [placement.device(node) for node in range(len(graph))]
    places = devices if location is str else [location(device) for device in devices]
    found: dict[tuple[int, int, str, bool, int], list[int]] = {}
    for node in range(2, len(graph)):
        here, place = devices[node], places[node]
        if not here:
            continue
        on_cpu = here in cpus
        if on_cpu and all(places[graph.edge_src[edge]] in (place, "") for edge in graph.in_edges[node]):
            continue
        controls = sorted(e for e in graph.in_edges[node] if graph.is_control(e))
        for edge in (*graph.data_in_edges(node), *controls):
            source, slot = graph.edge_src[edge], graph.edge_src_slot[edge]
            there = devices[source]
            if source == _SOURCE or not there or (places[source] == place and here != there):
                continue
            to_host = on_cpu or (slot != CONTROL and memory.of(node)[0][graph.edge_dst_slot[edge]])
            if here == there and (on_cpu or slot == CONTROL or memory.of(source)[1][slot] == to_host):
                continue
            own = edge if slot != CONTROL and dtypes.is_ref(graph.out_types[source][slot]) else _SHARED
            found.setdefault((source, slot, place, to_host, own), []).append(edge)
    sizes = TensorSizes(placement)
    made = tuple(
        _copy(placement, sizes, memory, cpus, source, slot, to_host, [graph.edge_dst[edge] for edge in edges])
        for (source, slot, _, to_host, _), edges in found.items()
    )
    return Transfers(made, {edge: i for i, edges in enumerate(found.values()) for edge in edges})


def _copy(
    placement: Placement,
    sizes: TensorSizes,
    memory: MemoryTypes,
    cpus: set[str],
    producer: int,
    slot: int,
    to_host: bool,
    consumers: list[int],
) -> Copy:
    graph = placement.graph
    name, source, target = graph.names[producer], placement.device(producer), placement.device(consumers[0])
    ends = tuple(dict.fromkeys(node for node in consumers if placement.device(node) == target))
    if slot == CONTROL:
        return Copy(producer, slot, f"^{name}", source, target, "float32", (0,), 0, ends)
    from_host = source in cpus or memory.of(producer)[1][slot]
    return Copy(
        producer,
        slot,
        f"{name}:{slot}",
        source,
        target,
        dtypes.name(graph.out_types[producer][slot]),
        sizes.shape(producer, slot),
        sizes.size(producer, slot),
        ends,
        "host" if from_host else "device",
        "host" if to_host else "device",
    )


def _by_dtype(types: tuple[int, ...]) -> tuple[bool, ...]:
    host = (DataType.DT_STRING, DataType.DT_RESOURCE, DataType.DT_INT32)
    return tuple((dtype - REF_OFFSET if dtype > REF_OFFSET else dtype) in host for dtype in types)
