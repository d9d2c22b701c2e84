"""The latency of blocks under moves of groups."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from simplace.optimize.grouped import GroupedProblem
from simplace.optimize.load_state import LoadState
from simplace.optimize.problem import CPU


class LatencyState(LoadState):
    """A placement of groups with its loads, and how many edges lead from each block to each other.

    The value is that of `compute_latency`; blocks are few, so that it costs as much as the nodes on the CPU.
    """

    def __init__(self, grouped: GroupedProblem, device_of: Sequence[int]) -> None:
        problem = grouped.problem
        self.group_of = grouped.group_of_nodes()
        edges = sorted({(output.producer, reader) for output in problem.outputs for reader in output.readers})
        # A node that waits for nothing and takes no time on the CPU holds nothing up.
        free = set(range(len(problem))) - {reader for _, reader in edges}
        free -= {node for node in free if problem.cpu_time[node]}
        self.cpu_nodes = [[node for node in nodes if node not in free] for nodes in grouped.members]
        self.before: list[list[int]] = [[] for _ in range(len(problem))]
        self.after: list[list[int]] = [[] for _ in range(len(problem))]
        self.reads: list[list[int]] = [[] for _ in grouped.members]  # groups, once for each edge from them
        self.feeds: list[list[int]] = [[] for _ in grouped.members]
        for producer, reader in edges:
            if producer not in free:
                self.before[reader].append(producer)
                self.after[producer].append(reader)
            one, other = self.group_of[producer], self.group_of[reader]
            if one != other:
                self.reads[other].append(one)
                self.feeds[one].append(other)
        super().__init__(grouped, device_of)

    def set_all(self, device_of: Sequence[int]) -> None:
        """Take over another placement."""
        super().set_all(device_of)
        self.between = [[0] * self.width for _ in range(self.width)]  # edges, by device and device
        for group, others in enumerate(self.feeds):
            for other in others:
                self.between[device_of[group]][device_of[other]] += 1

    def move(self, group: int, to: int, added: tuple[float, float]) -> None:
        """Move a group; `added` is what `try_move` says."""
        device_of, between = self.device_of, self.between
        old = device_of[group]
        for other in self.feeds[group]:
            device = device_of[other]
            between[old][device] -= 1
            between[to][device] += 1
        for other in self.reads[group]:
            device = device_of[other]
            between[device][old] -= 1
            between[device][to] += 1
        super().move(group, to, added)

    def measure(self) -> float:
        """Return the latency, infinity if a path leaves an accelerator and comes back."""
        device_of, group_of, width = self.device_of, self.group_of, self.width
        cpu_time = self.grouped.problem.cpu_time
        waits = [0] * width
        after: list[list[int]] = [[] for _ in range(width)]  # blocks, and nodes on the CPU as width + node
        for device in range(1, width):
            row = self.between[device]
            for other in range(1, width):
                if row[other] and other != device:
                    after[device].append(other)
                    waits[other] += 1
        on_cpu = [node for group, nodes in enumerate(self.cpu_nodes) if not device_of[group] for node in nodes]
        node_waits: dict[int, int] = {}
        for node in on_cpu:
            for producer in self.before[node]:
                device = device_of[group_of[producer]]
                if device:
                    after[device].append(width + node)
            for reader in self.after[node]:
                waits[device_of[group_of[reader]]] += 1
            node_waits[node] = len(self.before[node])
        waits[CPU] = 1  # no block
        ready = [device for device in range(width) if not waits[device]]
        ready += [width + node for node in on_cpu if not node_waits[node]]
        start: dict[int, float] = {}
        left, end = width - 1 + len(on_cpu), 0.0
        while ready:
            one = ready.pop()
            left -= 1
            if one < width:
                done = start.get(one, 0.0) + self.loads[one]
                following = after[one]
            else:
                done = start.get(one, 0.0) + cpu_time[one - width]
                following = []
                for reader in self.after[one - width]:
                    device = device_of[group_of[reader]]
                    following.append(device or width + reader)
            if done > end:
                end = done
            for other in following:
                if start.get(other, 0.0) < done:
                    start[other] = done
                if other < width:
                    waits[other] -= 1
                    if not waits[other]:
                        ready.append(other)
                else:
                    node_waits[other - width] -= 1
                    if not node_waits[other - width]:
                        ready.append(other)
        return end if not left else inf
