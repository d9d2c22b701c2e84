"""A placed graph: a device for every node, and nothing of how it was decided."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simplace.devices.device_set import DeviceSet
from simplace.graph.constant_numbers import Numbers
from simplace.graph.graph import Graph
from simplace.graph.op_kinds import ARGS
from simplace.program.program import NodeNotes, Program

_NO_NOTES = NodeNotes()

# Of an op, a device type and attributes: which inputs, and which outputs, the kernel keeps in host memory; None for an
# op that is not known.
HostMemory = Callable[[str, str, Mapping[str, Any]], tuple[tuple[bool, ...], tuple[bool, ...]] | None]


@dataclass(frozen=True, slots=True)
class PlacedNode:
    """View one node of a placed graph: TensorFlow's name, op, devices, and the user's own line ("" if unknown)."""

    id: int
    name: str
    op: str
    requested: str
    device: str
    source: str


@dataclass(frozen=True, slots=True)
class PlacedGraph:
    """Record of a program's graph with the device of each node: what partition, costs and executor need.

    `device_of` lists full device names by node id, "" for the source, the sink and what placement never reached.
    `host_memory` asks the kernels that the graph was placed with. Why a node has its device only a `Placement` can
    tell. `is_stateful` asks whether an op has effects besides its outputs, as one that is not known has,
    `is_commutative` whether it computes the same with its inputs in any order.
    """

    program: Program
    graph: Graph
    devices: DeviceSet
    host_memory: HostMemory
    device_of: Sequence[str]
    is_stateful: Callable[[str], bool]
    is_commutative: Callable[[str], bool]

    @property
    def is_whole(self) -> bool:
        """Return whether every node has a device, as after a placement that TensorFlow does not refuse."""
        return all(self.device_of[2:])

    @property
    def nodes(self) -> list[PlacedNode]:
        """List the placed nodes by id."""
        return [self.node(i) for i in self.graph.op_ids if self.device_of[i]]

    def node(self, i: int) -> PlacedNode:
        """View one node by id."""
        graph = self.graph
        return PlacedNode(i, graph.names[i], graph.ops[i], graph.requested[i], self.device_of[i], self.notes(i).at)

    def notes(self, i: int) -> NodeNotes:
        """Return the notes on a node for the program's author."""
        if not self.program.notes:  # as of a graph from a file
            return _NO_NOTES
        origin = self.graph.origins[i]
        return self.program.notes.get(origin.function, {}).get(origin.name, _NO_NOTES)

    def given_value(self, i: int) -> Numbers | None:
        """Return the integers that an argument was in the first call, None where they are not known, and of others."""
        index = self.graph.attrs[i].get("index") if self.graph.ops[i] in ARGS else None
        return self.program.given_values.get(index) if isinstance(index, int) else None

    def device(self, i: int) -> str:
        """Return the full device name of a node, "" if placement never reached it."""
        return self.device_of[i]

    def __iter__(self) -> Iterator[PlacedNode]:
        return iter(self.nodes)

    def __str__(self) -> str:
        return "\n".join(f"{node.name}: ({node.op}): {node.device}" for node in self.nodes)
