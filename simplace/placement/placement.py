"""A placement: the graph that the placer placed, and the evidence of how each node got its device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from simplace.devices.device_name import DeviceName
from simplace.devices.device_set import Device, DeviceSet
from simplace.errors import SimplaceError
from simplace.graph.graph import Graph
from simplace.placement.candidates import Candidates
from simplace.placement.colocation_graph import ColocationEdge, ColocationGroups, Notice
from simplace.placement.group_requests import GroupRequests, collect_requests
from simplace.placement.rules import Rule
from simplace.program.placed_graph import PlacedGraph, PlacedNode
from simplace.program.program import NodeNotes, Program
from simplace.program.status import Refusal


@dataclass(frozen=True, slots=True)
class Decision:
    """Record of how one node got its device.

    `follows` is the node whose device was taken over (-1: none); `candidates` is None for a node that came assigned.
    """

    device: str
    rule: Rule
    follows: int = -1
    candidates: Candidates | None = None


@dataclass(frozen=True)
class Placement:
    """Record of how the placer placed one program.

    `decisions` maps node ids to decisions; a refused placement lacks the nodes that were not reached. `order` lists
    node ids in the order in which TensorFlow decides and logs them. `default` is the placer's default device. The graph
    is that of the colocation groups: no other one can be put beside the evidence.
    """

    program: Program
    devices: DeviceSet
    default: Device | None
    soft_placement: bool
    groups: ColocationGroups
    decisions: dict[int, Decision]
    order: list[int]
    refusal: Refusal | None = None

    def with_label(self, label: str) -> Placement:
        """Return the same placement of a program that is called so."""
        return replace(self, program=replace(self.program, label=label))

    @property
    def graph(self) -> Graph:
        """Return the graph that was placed."""
        return self.groups.graph

    @cached_property
    def placed(self) -> PlacedGraph:
        """Return the graph with its devices, without the evidence."""
        support, table = self.groups.support, self.groups.support.table
        return PlacedGraph(
            self.program, self.graph, self.devices, support.host_memory, self.node_devices, table.is_stateful,
            table.is_commutative,
        )  # fmt: skip

    def runnable(self) -> PlacedGraph:
        """Return the graph with its devices; raise `SimplaceError` where TensorFlow refuses the placement."""
        if self.refusal is not None:
            first = self.refusal.message.splitlines()[0]
            raise SimplaceError(f"{self.program.name} cannot run, since TensorFlow refuses to place it: {first}")
        return self.placed

    @cached_property
    def rank(self) -> dict[int, int]:
        """Map a node to its place in the order of decisions."""
        return {node: i for i, node in enumerate(self.order)}

    @cached_property
    def members(self) -> dict[int, list[int]]:
        """Map the root of each colocation group to its members by id."""
        return self.groups.members()

    @cached_property
    def requests(self) -> dict[int, GroupRequests]:
        """Map the root of each colocation group of two members or more to what they requested."""
        return {
            root: collect_requests(self.graph, members, self.rank)
            for root, members in self.members.items()
            if len(members) > 1
        }

    @cached_property
    def joins_at(self) -> dict[int, list[ColocationEdge]]:
        """Map a node to its colocation edges, in the order they were added."""
        colocation_edges: dict[int, list[ColocationEdge]] = {}
        for join in self.groups.colocation_edges:
            colocation_edges.setdefault(join.first, []).append(join)
            colocation_edges.setdefault(join.second, []).append(join)
        return colocation_edges

    @cached_property
    def dropped_requests(self) -> dict[int, Notice]:
        """Map a node to the first notice that a request of its group was dropped for it."""
        return {notice.node: notice for notice in reversed(self.groups.notices) if notice.dropped}

    @property
    def nodes(self) -> list[PlacedNode]:
        """List the placed nodes by id."""
        return self.placed.nodes

    def node(self, i: int) -> PlacedNode:
        """View one node by id."""
        return self.placed.node(i)

    def notes(self, i: int) -> NodeNotes:
        """Return the notes on a node for the program's author."""
        return self.placed.notes(i)

    def device(self, i: int) -> str:
        """Return the full device name of a node, "" if placement never reached it."""
        return self.decisions[i].device if i in self.decisions else ""

    @cached_property
    def node_devices(self) -> list[str]:
        """List the full device name of each node by id, "" where there is none."""
        devices = [""] * len(self.graph)
        for node, decision in self.decisions.items():
            devices[node] = decision.device
        return devices

    def __iter__(self) -> Iterator[PlacedNode]:
        return iter(self.nodes)

    def __str__(self) -> str:
        return str(self.placed)


def is_request_granted(placement: Placement, node: int) -> bool:
    """Return whether a placed node is on a device that its own request allows; no request allows every device."""
    requested = placement.graph.requested[node]
    return not requested or _allows(requested, placement.devices.by_name[placement.device(node)].spec)


@lru_cache(maxsize=1024)
def _allows(requested: str, device: DeviceName) -> bool:
    own = DeviceName.parse(requested)
    return own is None or own.matches(device)
