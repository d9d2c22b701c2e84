"""The copies between devices that a placement makes necessary.

Mirrors the sends and receives of tensorflow/core/graph/graph_partition.cc: one transfer per tensor, destination
device and memory, shared by its consumers there; a control edge across devices sends an empty tensor. A reference is
sent anew to each consumer, since it is read at that moment. Where a graph is partitioned by task, a tensor is
sent once to a task, to the device of its first consumer there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, overload

from simplace.graph import dtypes
from simplace.graph.builder import CONTROL
from simplace.graph.dtypes import REF_OFFSET, DataType
from simplace.graph.graph import Graph
from simplace.graph.node_def import Shape
from simplace.partition.shapes import TensorSizes
from simplace.partition.worker_graphs import Location
from simplace.program.placed_graph import PlacedGraph

_SHARED = -1
_LAST_SLOT = (1 << 32) - 1  # what a control edge counts as where edges are sorted by slot

_Sides = tuple[tuple[bool, ...], tuple[bool, ...]]


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
        """Return whether only the order is sent."""
        return self.slot == CONTROL


class MemoryTypes:
    """Record of the inputs and outputs of placed nodes that are in host memory though their node runs on a device.

    `sides` has for each node (inputs in host memory, outputs in host memory), `special` whether any of its own are,
    `cpus` has the names of the devices that have no other.
    """

    def __init__(self, placed: PlacedGraph) -> None:
        graph = placed.graph
        self._host_memory = placed.host_memory
        self._devices = placed.devices.by_name
        self.cpus = frozenset(device.name for device in placed.devices if device.type == "CPU")
        known: dict[tuple[str, int, str], _Sides | None] = {}  # the graph keeps its attributes, and nodes share them
        self.sides: list[_Sides] = []
        for node, key in enumerate(zip(graph.ops, map(id, graph.attrs), placed.device_of, strict=True)):
            if key not in known:
                known[key] = self._look_up(key[0], key[2], graph.attrs[node])
            self.sides.append(known[key] or (_by_dtype(graph.in_types[node]), _by_dtype(graph.out_types[node])))
        self.special = [True in inputs or True in outputs for inputs, outputs in self.sides]

    def of(self, node: int) -> _Sides:
        """Return (inputs in host memory, outputs in host memory)."""
        return self.sides[node]

    def _look_up(self, op: str, device: str, attrs: Mapping[str, Any]) -> _Sides | None:
        """Return the memory types of the kernel, None for an op without one."""
        on = self._devices.get(device)
        return None if on is None else self._host_memory(op, on.type, attrs)


class CopyColumns(Sequence[Copy]):
    """List copies, each a record that is made when it is asked for; what sums need of all of them stands in columns."""

    def __init__(
        self,
        slots: Sequence[int],
        sources: Sequence[str],
        targets: Sequence[str],
        sizes: Sequence[int | None],
        tensor: Callable[[int], str],
        record: Callable[[int], Copy],
    ) -> None:
        self.slots = slots
        self.sources = sources
        self.targets = targets
        self.sizes = sizes
        self.tensor = tensor
        self.record = record

    @classmethod
    def of(cls, copies: Sequence[Copy]) -> CopyColumns:
        """Return the columns of records that are there already."""
        rows = [(copy.slot, copy.source, copy.target, copy.size) for copy in copies]
        slots, sources, targets, sizes = zip(*rows, strict=True) if rows else ((), (), (), ())
        return cls(slots, sources, targets, sizes, lambda i: copies[i].tensor, copies.__getitem__)

    def __len__(self) -> int:
        return len(self.slots)

    def __iter__(self) -> Iterator[Copy]:
        return map(self.record, range(len(self)))

    @overload
    def __getitem__(self, index: int) -> Copy: ...

    @overload
    def __getitem__(self, index: slice) -> list[Copy]: ...

    def __getitem__(self, index: int | slice) -> Copy | list[Copy]:
        found = range(len(self))[index]
        return self.record(found) if isinstance(found, int) else [self.record(i) for i in found]

    def between_devices(self) -> list[int]:
        """Return the numbers of the copies that the function of that name would list."""
        rows = zip(self.slots, self.sources, self.targets, strict=True)
        return [i for i, (slot, source, target) in enumerate(rows) if source != target and slot != CONTROL]


def between_devices(copies: Iterable[Copy]) -> list[Copy]:
    """List the copies that carry a tensor to another device, not order alone, nor to another memory of one device."""
    return [copy for copy in copies if copy.source != copy.target and not copy.is_control]


@dataclass(frozen=True)
class Transfers:
    """Record of the transfers of a graph: (producer, output slot, whether to host memory) and the edges of each."""

    placed: PlacedGraph
    memory: MemoryTypes
    sent: Sequence[tuple[int, int, bool]]
    edges: Sequence[Sequence[int]]

    @cached_property
    def copies(self) -> tuple[Copy, ...]:
        """Return a record of each transfer."""
        return tuple(self.columns)

    @cached_property
    def of_edge(self) -> Mapping[int, int]:
        """Map the edges that need a transfer to its number."""
        return {edge: i for i, edges in enumerate(self.edges) for edge in edges}

    @cached_property
    def columns(self) -> CopyColumns:
        """Return the transfers in columns."""
        devices, edge_dst, size = self.placed.device_of, self.placed.graph.edge_dst, self._sizes.size
        return CopyColumns(
            [slot for _, slot, _ in self.sent],
            [devices[producer] for producer, _, _ in self.sent],
            [devices[edge_dst[edges[0]]] for edges in self.edges],
            [0 if slot == CONTROL else size(producer, slot) for producer, slot, _ in self.sent],
            self._tensor,
            self._record,
        )

    @cached_property
    def _sizes(self) -> TensorSizes:
        return TensorSizes(self.placed)

    def _tensor(self, i: int) -> str:
        producer, slot, _ = self.sent[i]
        name = self.placed.graph.names[producer]
        return f"^{name}" if slot == CONTROL else f"{name}:{slot}"

    def _record(self, i: int) -> Copy:
        graph, devices = self.placed.graph, self.placed.device_of
        producer, slot, to_host = self.sent[i]
        consumers = [graph.edge_dst[edge] for edge in self.edges[i]]
        source, target = devices[producer], devices[consumers[0]]
        ends = tuple(dict.fromkeys(node for node in consumers if devices[node] == target))
        if slot == CONTROL:
            return Copy(producer, slot, self._tensor(i), source, target, "float32", (0,), 0, ends)
        return Copy(
            producer,
            slot,
            self._tensor(i),
            source,
            target,
            dtypes.format_dtype(graph.out_types[producer][slot]),
            self._sizes.shape(producer, slot),
            self.columns.sizes[i],
            ends,
            "host" if source in self.memory.cpus or self.memory.of(producer)[1][slot] else "device",
            "host" if to_host else "device",
        )


def find_transfers(placed: PlacedGraph, location: Location = str) -> Transfers:
    """Find the transfers of a graph as it is, without rewriting it first; ids are those of its own nodes.

    `location` maps a device to the subgraph of its nodes: nodes of one subgraph on different devices send nothing.
    """
    graph, devices = placed.graph, placed.device_of
    memory = MemoryTypes(placed)
    special = memory.special
    place_of = {device: location(device) for device in set(devices)}
    on_cpu = {device: device in memory.cpus for device in place_of}
    src, src_slot, dst, dst_slot = graph.edge_src, graph.edge_src_slot, graph.edge_dst, graph.edge_dst_slot
    out_types, sides = graph.out_types, memory.sides
    found: dict[tuple[int, int, str, bool, int], list[int]] = {}
    for edge in _by_consumer(graph):
        source, node, slot = src[edge], dst[edge], src_slot[edge]
        there, here = devices[source], devices[node]
        if here == there:
            if slot == CONTROL or not (special[source] or special[node]):
                continue
            to_host = sides[node][0][dst_slot[edge]]
            if not here or on_cpu[here] or sides[source][1][slot] == to_host:
                continue
        elif not here or not there or place_of[here] == place_of[there]:
            continue
        else:
            to_host = on_cpu[here] or (slot != CONTROL and sides[node][0][dst_slot[edge]])
        own = edge if slot != CONTROL and out_types[source][slot] > REF_OFFSET else _SHARED
        key = (source, slot, place_of[here], to_host, own)
        edges = found.get(key)
        if edges is None:
            found[key] = [edge]
        else:
            edges.append(edge)
    return Transfers(placed, memory, [(key[0], key[1], key[3]) for key in found], list(found.values()))


def _by_consumer(graph: Graph) -> Sequence[int]:
    """List the edges by the node they lead to: data by slot, then control, the oldest first."""
    keys = [(node << 32) + (slot & _LAST_SLOT) for node, slot in zip(graph.edge_dst, graph.edge_dst_slot, strict=True)]
    return sorted(range(len(keys)), key=keys.__getitem__)


def _by_dtype(types: tuple[int, ...]) -> tuple[bool, ...]:
    host = (DataType.DT_STRING, DataType.DT_RESOURCE, DataType.DT_INT32)
    return tuple((dtype - REF_OFFSET if dtype > REF_OFFSET else dtype) in host for dtype in types)
