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
from itertools import compress, count, islice, repeat
from operator import and_, le, ne, or_
from typing import Any, overload

from simplace.graph import dtypes
from simplace.graph.builder import CONTROL
from simplace.graph.dtypes import REF_OFFSET, DataType
from simplace.graph.graph import Graph
from simplace.graph.node_def import Shape
from simplace.partition.shapes import TensorSizes
from simplace.program.placed_graph import PlacedGraph

Location = Callable[[str], str]  # maps a full device name to the subgraph of its nodes

_TO_HOST = 1  # the last bit of a place
_SHARED = 3  # the length of the key of a transfer that several edges share
_LAST_SLOT = (1 << 32) - 1  # what a control edge counts as where edges are sorted by slot

_Sides = tuple[tuple[bool, ...], tuple[bool, ...]]
# Which transfer an edge needs: the producer, its output, the place that it goes to (with the last bit, to host memory
# there), and the edge itself where no other shares the transfer.
Key = tuple[int, int, int] | tuple[int, int, int, int]


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
    """List copies, each a record that is made when it is needed; what sums need of all of them is in columns."""

    def __init__(
        self,
        producers: Sequence[int],
        slots: Sequence[int],
        sources: Sequence[str],
        targets: Sequence[str],
        sizes: Sequence[int | None],
        tensor: Callable[[int], str],
        record: Callable[[int], Copy],
    ) -> None:
        self.producers = producers
        self.slots = slots
        self.sources = sources
        self.targets = targets
        self.sizes = sizes
        self.tensor = tensor
        self._record = record
        self._made: dict[int, Copy] = {}

    @classmethod
    def of(cls, copies: Sequence[Copy]) -> CopyColumns:
        """Return the columns of records that are there already."""
        rows = [(copy.producer, copy.slot, copy.source, copy.target, copy.size) for copy in copies]
        producers, slots, sources, targets, sizes = zip(*rows, strict=True) if rows else ((), (), (), (), ())
        return cls(producers, slots, sources, targets, sizes, lambda i: copies[i].tensor, copies.__getitem__)

    def __len__(self) -> int:
        return len(self.slots)

    def __iter__(self) -> Iterator[Copy]:
        return map(self.record, range(len(self)))

    def record(self, number: int) -> Copy:
        """Return the record of one copy, made when it is first needed."""
        made = self._made.get(number)
        if made is None:
            made = self._made[number] = self._record(number)
        return made

    @overload
    def __getitem__(self, index: int) -> Copy: ...

    @overload
    def __getitem__(self, index: slice) -> list[Copy]: ...

    def __getitem__(self, index: int | slice) -> Copy | list[Copy]:
        found = range(len(self))[index]
        return self.record(found) if isinstance(found, int) else [self.record(i) for i in found]

    @cached_property
    def between_devices(self) -> list[int]:
        """List the numbers of the copies that the function of that name would list."""
        crosses = map(ne, self.sources, self.targets)
        return list(compress(count(), map(and_, crosses, map(ne, self.slots, repeat(CONTROL)))))


def between_devices(copies: Iterable[Copy]) -> list[Copy]:
    """List the copies that carry a tensor to another device, not order alone, nor to another memory of one device."""
    return [copy for copy in copies if copy.source != copy.target and not copy.is_control]


class _Places:
    """Find the transfer that an edge needs, from the locations of its nodes.

    `of` has a number for the location of each node's device, whose last bit says whether the device is a CPU.
    """

    def __init__(self, placed: PlacedGraph, location: Location, memory: MemoryTypes) -> None:
        self._graph = placed.graph
        self._devices = placed.device_of
        self.memory = memory
        locations: dict[str, int] = {}
        number_of = {}
        for device in dict.fromkeys(self._devices):
            number = locations.setdefault(location(device), 2 * len(locations))
            number_of[device] = number + (_TO_HOST if device in self.memory.cpus else 0)
        self.of = [number_of[device] for device in self._devices]
        self.is_one_to_one = len(locations) == len(number_of)

    def find_key(self, edge: int) -> Key | None:
        """Return the transfer that an edge between nodes with a device needs, None where it needs none."""
        graph, devices, sides = self._graph, self._devices, self.memory.sides
        source, node, slot = graph.edge_src[edge], graph.edge_dst[edge], graph.edge_src_slot[edge]
        here, is_on_cpu = self.of[node], self.of[node] & _TO_HOST
        to_host = is_on_cpu or (slot != CONTROL and sides[node][0][graph.edge_dst_slot[edge]])
        if devices[source] == devices[node]:
            if slot == CONTROL or is_on_cpu or sides[source][1][slot] == to_host:
                return None
        elif here | _TO_HOST == self.of[source] | _TO_HOST:
            return None
        if slot != CONTROL and graph.out_types[source][slot] > REF_OFFSET:
            return source, slot, here | to_host, edge
        return source, slot, here | to_host

    def list_edges_apart(self) -> list[int]:
        """List the edges between nodes on different devices, and those at nodes with tensors in host memory."""
        devices, src, dst = self._devices, self._graph.edge_src, self._graph.edge_dst
        number_of = {device: i for i, device in enumerate(dict.fromkeys(devices))}
        rows = zip(devices, self.memory.special, strict=True)
        kinds = [~node if is_special else number_of[device] for node, (device, is_special) in enumerate(rows)]
        apart = compress(count(), map(ne, [kinds[node] for node in src], [kinds[node] for node in dst]))
        # nodes without a device, such as the source, need nothing
        return [edge for edge in apart if devices[src[edge]] and devices[dst[edge]]]

    @cached_property
    def is_odd(self) -> list[bool]:
        """Return for each node whether an edge there needs a closer look: tensors in host memory, or references."""
        has_refs = {types: max(types, default=0) > REF_OFFSET for types in set(self._graph.out_types)}
        rows = zip(self.memory.special, self._graph.out_types, strict=True)
        return [is_special or has_refs[types] for is_special, types in rows]


@dataclass(frozen=True)
class Transfers:
    """Record of the transfers of a graph: `edges` in the order of their consumers, and the transfer that each needs."""

    placed: PlacedGraph
    places: _Places
    edges: Sequence[int]
    keys: Sequence[Key]

    @cached_property
    def copies(self) -> tuple[Copy, ...]:
        """Return a record of each transfer."""
        return tuple(self.columns)

    @cached_property
    def of_edge(self) -> Mapping[int, int]:
        """Map the edges that need a transfer to its number."""
        numbers = {key: i for i, key in enumerate(dict.fromkeys(self.keys))}
        return {edge: numbers[key] for edge, key in zip(self.edges, self.keys, strict=True)}

    @cached_property
    def columns(self) -> CopyColumns:
        """Return the transfers in columns."""
        devices, edge_dst = self.placed.device_of, self.placed.graph.edge_dst
        outputs = [self.keys[i][:2] for i in self._first]
        sizes = {
            (node, slot): 0 if slot == CONTROL else self._sizes.size(node, slot)
            for node, slot in dict.fromkeys(outputs)
        }
        return CopyColumns(
            [node for node, _ in outputs],
            [slot for _, slot in outputs],
            [devices[node] for node, _ in outputs],
            [devices[edge_dst[self.edges[i]]] for i in self._first],
            [sizes[output] for output in outputs],
            self._tensor,
            self._record,
        )

    @cached_property
    def _first(self) -> list[int]:
        """List for each transfer where the first edge that needs it stands in `edges`."""
        places = range(len(self.keys))
        return sorted(dict(zip(reversed(self.keys), reversed(places), strict=True)).values())

    @cached_property
    def _sizes(self) -> TensorSizes:
        return TensorSizes(self.placed)

    def _tensor(self, i: int) -> str:
        producer, slot = self.keys[self._first[i]][:2]
        name = self.placed.graph.names[producer]
        return f"^{name}" if slot == CONTROL else f"{name}:{slot}"

    def _record(self, i: int) -> Copy:
        graph, devices, memory = self.placed.graph, self.placed.device_of, self.places.memory
        key, first = self.keys[self._first[i]], self.edges[self._first[i]]
        producer, slot = key[:2]
        source, target = devices[producer], devices[graph.edge_dst[first]]
        consumers = {graph.edge_dst[edge] for edge in self._edges_like(first, key)}
        ends = tuple(sorted(node for node in consumers if devices[node] == target))
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
            "host" if source in memory.cpus or memory.of(producer)[1][slot] else "device",
            "host" if key[2] & _TO_HOST else "device",
        )

    def _edges_like(self, first: int, key: Key) -> list[int]:
        """List the edges of a transfer: those out of its producer that need the same one."""
        if len(key) > _SHARED:
            return [first]
        graph, devices = self.placed.graph, self.placed.device_of
        outgoing = (edge for edge in graph.out_edges[key[0]] if graph.edge_src_slot[edge] == key[1])
        return [edge for edge in outgoing if devices[graph.edge_dst[edge]] and self.places.find_key(edge) == key]


def find_transfers(placed: PlacedGraph, memory: MemoryTypes, location: Location = str) -> Transfers:
    """Find the transfers of a graph as it is, without rewriting it first; ids are those of its own nodes.

    `memory` is that of the graph. Nodes of one subgraph on different devices send nothing: `location` says whose each
    device's are.
    """
    graph, places = placed.graph, _Places(placed, location, memory)
    edges = _by_consumer(graph, places.list_edges_apart())
    if not places.is_one_to_one:
        return _without_none(placed, places, edges, list(map(places.find_key, edges)))
    src, dst, slot, place = graph.edge_src, graph.edge_dst, graph.edge_src_slot, places.of
    sources, nodes = [src[edge] for edge in edges], [dst[edge] for edge in edges]
    slots, targets = [slot[edge] for edge in edges], [place[node] for node in nodes]
    keys: list[Key | None] = list(zip(sources, slots, targets, strict=True))
    is_odd = places.is_odd.__getitem__
    for i in compress(count(), map(or_, map(is_odd, sources), map(is_odd, nodes))):
        keys[i] = places.find_key(edges[i])
    return _without_none(placed, places, edges, keys)


def _without_none(placed: PlacedGraph, places: _Places, edges: Sequence[int], keys: Sequence[Key | None]) -> Transfers:
    """Leave out the edges that need no transfer."""
    found = [key for key in keys if key is not None]
    if len(found) < len(keys):
        edges = [edge for edge, key in zip(edges, keys, strict=True) if key is not None]
    return Transfers(placed, places, edges, found)


def _by_consumer(graph: Graph, edges: Sequence[int]) -> Sequence[int]:
    """Sort edges by the node they lead to: data by slot, then control, the oldest first."""
    dst, dst_slot = graph.edge_dst, graph.edge_dst_slot
    keys = [(dst[edge] << 32) + (dst_slot[edge] & _LAST_SLOT) for edge in edges]
    if all(map(le, keys, islice(keys, 1, None))):
        return edges
    return [edge for _, edge in sorted(zip(keys, edges, strict=True))]


def _by_dtype(types: tuple[int, ...]) -> tuple[bool, ...]:
    host = (DataType.DT_STRING, DataType.DT_RESOURCE, DataType.DT_INT32)
    return tuple((dtype - REF_OFFSET if dtype > REF_OFFSET else dtype) in host for dtype in types)
