"""A placed graph: a device for every node, and the record of how each was decided."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from simplace.devices import Device, DeviceSet
from simplace.graph.model import Graph
from simplace.importers.program import NodeNotes, Program
from simplace.placement.candidates import Candidates
from simplace.placement.colocation import ColocationGroups, Join
from simplace.placement.rules import Rule
from simplace.refusal import Refusal

_NO_NOTES = NodeNotes()


@dataclass(frozen=True, slots=True)
class Decision:
    """Say how one node got its device.

    `follows` is the node whose device was taken over (-1: none); `candidates` is None for a node that came assigned.
    """

    device: str
    rule: Rule
    follows: int = -1
    candidates: Candidates | None = None


@dataclass(frozen=True, slots=True)
class PlacedNode:
    """View one node of a placement: TensorFlow's name, op, devices, and the user's own line ("" if unknown)."""

    id: int
    name: str
    op: str
    requested: str
    device: str
    source: str


@dataclass(frozen=True)
class Placement:
    """Hold the placement of one program.

    `decisions` maps node ids to decisions; a refused placement lacks the nodes that were not reached. `order` lists
    node ids in the order in which TensorFlow decides and logs them. `default` is the placer's default device.
    """

    program: Program
    graph: Graph
    devices: DeviceSet
    default: Device | None
    soft_placement: bool
    groups: ColocationGroups
    decisions: dict[int, Decision]
    order: list[int]
    refusal: Refusal | None = None

    @cached_property
    def rank(self) -> dict[int, int]:
        """Map a node to its place in the order of decisions."""
        return {node: i for i, node in enumerate(self.order)}

    @cached_property
    def members(self) -> dict[int, list[int]]:
        """Map the root of each colocation group to its members by id."""
        return self.groups.members()

    @cached_property
    def joins_at(self) -> dict[int, list[Join]]:
        """Map a node to the joins it takes part in, in the order they were made."""
        joins: dict[int, list[Join]] = {}
        for join in self.groups.joins:
            joins.setdefault(join.first, []).append(join)
            joins.setdefault(join.second, []).append(join)
        return joins

    @property
    def nodes(self) -> list[PlacedNode]:
        """List the placed nodes by id."""
        return [self.node(i) for i in range(2, len(self.graph)) if i in self.decisions]

    def node(self, i: int) -> PlacedNode:
        """View one node by id."""
        graph = self.graph
        device = self.decisions[i].device if i in self.decisions else ""
        return PlacedNode(i, graph.names[i], graph.ops[i], graph.requested[i], device, self.notes(i).at)

    def notes(self, i: int) -> NodeNotes:
        """Return what the program's author would want to know of a node."""
        origin = self.graph.origins[i]
        return self.program.notes.get(origin.function, {}).get(origin.name, _NO_NOTES)

    def device(self, i: int) -> str:
        """Return the full device name of a node, "" if placement never reached it."""
        return self.decisions[i].device if i in self.decisions else ""

    def __iter__(self) -> Iterator[PlacedNode]:
        return iter(self.nodes)

    def __str__(self) -> str:
        return "\n".join(f"{node.name}: ({node.op}): {node.device}" for node in self.nodes)
