"""A placed graph that is being rewritten before it is partitioned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from simplace.graph.builder import CONTROL, Origin
from simplace.graph.graph import Graph
from simplace.partition.transfers import MemoryTypes, Transfers, find_transfers
from simplace.program.placed_graph import PlacedGraph

MADE_BY = "partition"

Edge = tuple[int, int, int, int]  # source, its output slot, destination, its input slot
Types = tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True)
class Rewritten:
    """Record of a placed graph as TensorFlow partitions it.

    `origin` maps its node ids to those of the placed graph it came from: a node of a control loop to the one that it
    was made for, an argument or result of a session's run to -1. `loop_merges` are the Merge nodes of control loops.
    """

    placed: PlacedGraph
    origin: tuple[int, ...]
    loop_merges: frozenset[int] = frozenset()

    @cached_property
    def memory(self) -> MemoryTypes:
        """Return which tensors of the graph are in host memory."""
        return MemoryTypes(self.placed)

    @cached_property
    def transfers(self) -> Transfers:
        """Return what goes from one device, or memory, to another where each device has a subgraph."""
        return find_transfers(self.placed, self.memory)

    def originals(self, ids: tuple[int, ...]) -> tuple[int, ...]:
        """Translate node ids back; nodes that have no original are left out."""
        return tuple(dict.fromkeys(self.origin[i] for i in ids if self.origin[i] >= 0))


class Draft:
    """Mutable placed graph: nodes and edges can be added and removed; ids and edge numbers stay until `finished`."""

    def __init__(self, placed: PlacedGraph) -> None:
        graph = placed.graph
        self.placed = placed
        self.names = list(graph.names)
        self.ops = list(graph.ops)
        self.attrs = list(graph.attrs)
        self.in_types = list(graph.in_types)
        self.out_types = list(graph.out_types)
        self.origins = list(graph.origins)
        self.devices = [placed.device(i) for i in range(len(graph))]
        self.came_from = list(range(len(graph)))
        self.edges = list(zip(graph.edge_src, graph.edge_src_slot, graph.edge_dst, graph.edge_dst_slot, strict=True))
        self.removed: set[int] = set()
        self.loop_merges: set[int] = set()

    @property
    def op_ids(self) -> range:
        """Return the ids of all nodes but the source and the sink, removed ones included."""
        return range(2, len(self.names))

    def add_node(
        self, name: str, op: str, device: str, attrs: Mapping[str, Any], types: Types, *, like: int = -1, near: int = -1
    ) -> int:
        """Add a node and return its id; it is a copy of the node `like`, or was made for the node `near`."""
        self.names.append(name)
        self.ops.append(op)
        self.attrs.append(attrs)
        self.in_types.append(types[0])
        self.out_types.append(types[1])
        self.origins.append(self.origins[like] if like >= 0 else Origin("", name, made_by=MADE_BY))
        self.devices.append(device)
        self.came_from.append(like if like >= 0 else near)
        return len(self.names) - 1

    def add_edge(self, src: int, src_slot: int, dst: int, dst_slot: int) -> None:
        """Add an edge."""
        self.edges.append((src, src_slot, dst, dst_slot))

    def add_control_edge(self, src: int, dst: int) -> None:
        """Add a control edge."""
        self.add_edge(src, CONTROL, dst, CONTROL)

    def remove_node(self, node: int) -> None:
        """Remove a node; its edges go with it when the draft is finished."""
        self.removed.add(node)

    def finished(self) -> Rewritten:
        """Return the rewritten graph: nodes by id, edges by number, duplicates dropped."""
        kept = [i for i in range(len(self.names)) if i not in self.removed]
        number = {node: i for i, node in enumerate(kept)}
        edges = self._edges(number)
        columns = [list(column) for column in zip(*edges, strict=True)] or [[], [], [], []]
        none = [""] * len(kept)
        graph = Graph(
            [self.names[i] for i in kept], [self.ops[i] for i in kept], none, none, [self.attrs[i] for i in kept],
            [self.in_types[i] for i in kept], [self.out_types[i] for i in kept], [self.origins[i] for i in kept],
            *columns,
        )  # fmt: skip
        placed = replace(self.placed, graph=graph, device_of=[self.devices[i] for i in kept])
        merges = frozenset(number[merge] for merge in self.loop_merges)
        return Rewritten(placed, tuple(self.came_from[i] for i in kept), merges)

    def _edges(self, number: Mapping[int, int]) -> list[Edge]:
        """List the edges by new node ids; only those from a control loop's Merge may come twice, and count."""
        found: list[Edge] = []
        seen: set[Edge] = set()
        for edge in self.edges:
            if edge[0] not in number or edge[2] not in number:
                continue
            if edge not in seen or edge[0] in self.loop_merges:
                seen.add(edge)
                found.append((number[edge[0]], edge[1], number[edge[2]], edge[3]))
        return found
