"""A placement problem contracted to its colocation groups, as flat lists for the search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import networkx as nx

from simplace.optimize.problem import CPU, PlacementProblem


@dataclass(frozen=True)
class Net:
    """Outputs of a group that the same other groups read: their summed cost."""

    producer: int
    readers: tuple[int, ...]
    cost: float


@dataclass(frozen=True)
class GroupedProblem:
    """The groups of a problem; a group is what the search moves."""

    problem: PlacementProblem
    members: tuple[tuple[int, ...], ...]  # nodes
    time: tuple[tuple[float, ...], ...]  # by group and device
    bytes: tuple[float, ...]
    allowed: tuple[tuple[int, ...], ...]  # devices, by group
    nets: tuple[Net, ...]
    order: tuple[int, ...]  # groups by their inputs; those on a cycle stand together

    def __len__(self) -> int:
        """Return the number of groups."""
        return len(self.members)

    @property
    def accelerators(self) -> range:
        """Return the numbers of the accelerators."""
        return range(1, self.problem.accelerators + 1)

    def group_of_nodes(self) -> list[int]:
        """Return the number of the group of each node."""
        group_of = [0] * len(self.problem)
        for group, nodes in enumerate(self.members):
            for node in nodes:
                group_of[node] = group
        return group_of

    def fits(self, device_of_group: Sequence[int]) -> bool:
        """Return whether a placement of groups keeps the bytes of each accelerator."""
        held = [0.0] * len(self.problem.devices)
        for group, device in enumerate(device_of_group):
            held[device] += self.bytes[group]
        return all(each <= self.problem.accelerator_bytes for each in held[1:])

    def spread(self, device_of_group: Sequence[int]) -> tuple[int, ...]:
        """Return the device of each node."""
        return tuple(device_of_group[group] for group in self.group_of_nodes())


def group_problem(problem: PlacementProblem) -> GroupedProblem:
    """Contract a problem to its colocation groups, in the order of their first nodes."""
    number: dict[int, int] = {}
    of = [number.setdefault(group, len(number)) for group in problem.group_of]
    members: list[list[int]] = [[] for _ in number]
    for node, group in enumerate(of):
        members[group].append(node)
    costs: dict[tuple[int, tuple[int, ...]], float] = {}
    for output in problem.outputs:
        readers = tuple(sorted({of[reader] for reader in output.readers} - {of[output.producer]}))
        if readers:
            key = (of[output.producer], readers)
            costs[key] = costs.get(key, 0.0) + output.cost
    nets = tuple(Net(producer, readers, cost) for (producer, readers), cost in costs.items())
    return GroupedProblem(
        problem=problem,
        members=tuple(map(tuple, members)),
        time=tuple(
            tuple(sum(problem.time_on(node, device) for node in nodes) for device in problem.devices)
            for nodes in members
        ),
        bytes=tuple(sum(problem.node_bytes[node] for node in nodes) for nodes in members),
        allowed=tuple(_allow_devices(problem, nodes) for nodes in members),
        nets=nets,
        order=_order_groups(len(members), nets),
    )


def _allow_devices(problem: PlacementProblem, nodes: list[int]) -> tuple[int, ...]:
    """Return the devices that can hold a group alone."""
    fits = sum(problem.node_bytes[node] for node in nodes) <= problem.accelerator_bytes
    pins = {problem.pinned[node] for node in nodes if node in problem.pinned}
    return tuple(
        device
        for device in problem.devices
        if pins <= {device} and (fits or device == CPU) and all(problem.time_on(node, device) < inf for node in nodes)
    )


def _order_groups(groups: int, nets: tuple[Net, ...]) -> tuple[int, ...]:
    """Order groups by their inputs, depth first, so that a branch stands together."""
    graph = nx.DiGraph()
    graph.add_nodes_from(range(groups))
    graph.add_edges_from((net.producer, reader) for net in nets for reader in net.readers)
    # Tarjan's algorithm finishes a component after all that it leads to.
    return tuple(
        group for component in reversed(list(nx.strongly_connected_components(graph))) for group in sorted(component)
    )
