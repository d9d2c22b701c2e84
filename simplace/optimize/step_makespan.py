"""The makespan of one step: nodes list-scheduled on their devices, with copies between them."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from math import inf

from simplace.graph.algorithm import order_by_inputs
from simplace.optimize.problem import CPU, PlacementProblem


def compute_makespan(problem: PlacementProblem, device_of: Sequence[int]) -> float:
    """Return when the last node ends, infinity if nodes wait for each other.

    A device runs one node at a time, the CPU one on each core: of those that are ready the one with the largest upward
    rank, then the smallest number. An output is copied once to each device that reads it; between two devices copies
    follow each other, in each direction, and cost what the output costs.
    """
    return StepSimulation(problem).run(device_of)


class StepSimulation:
    """Simulator of one step of a problem, under any placement."""

    def __init__(self, problem: PlacementProblem) -> None:
        self.problem = problem
        nodes = range(len(problem))
        self.outputs: list[list[tuple[tuple[int, ...], float]]] = [[] for _ in nodes]
        self.waits = [0] * len(problem)
        for output in problem.outputs:
            self.outputs[output.producer].append((output.readers, output.cost))
            for reader in output.readers:
                self.waits[reader] += 1
        rank = rank_upward(problem)
        # The place of each node in the queue of its device.
        self.place = [0] * len(problem)
        for at, node in enumerate(sorted(nodes, key=lambda node: (-rank[node], node))):
            self.place[node] = at
        self.node_at = sorted(nodes, key=self.place.__getitem__)
        self.times = [[problem.time_on(node, device) for node in nodes] for device in problem.devices]

    def run(self, device_of: Sequence[int]) -> float:
        """Return the makespan under a placement."""
        waits = list(self.waits)
        devices = len(self.problem.devices)
        ready: list[list[int]] = [[] for _ in range(devices)]
        free = [1] * devices
        free[CPU] = self.problem.cpu_cores
        link = [0.0] * (devices * devices)  # when a link is free, by source and destination
        events: list[tuple[float, int]] = []  # an end of a node, or (beyond the nodes) arrivals
        arrivals: list[Sequence[int]] = []
        nodes, ended, now = len(device_of), 0, 0.0

        def arrive(readers: Sequence[int]) -> None:
            for reader in readers:
                waits[reader] -= 1
                if not waits[reader]:
                    heapq.heappush(ready[device_of[reader]], self.place[reader])

        arrive_first = [node for node in range(nodes) if not waits[node]]
        for node in arrive_first:
            heapq.heappush(ready[device_of[node]], self.place[node])
        changed = set(range(devices))
        while True:
            for device in sorted(changed):
                queue = ready[device]
                while queue and free[device]:
                    node = self.node_at[heapq.heappop(queue)]
                    free[device] -= 1
                    heapq.heappush(events, (now + self.times[device][node], node))
            if not events:
                return now if ended == nodes else inf
            changed.clear()
            now = events[0][0]
            while events and events[0][0] == now:
                one = heapq.heappop(events)[1]
                if one >= nodes:
                    arrive(arrivals[one - nodes])
                    changed.update(device_of[reader] for reader in arrivals[one - nodes])
                    continue
                ended += 1
                home = device_of[one]
                free[home] += 1
                changed.add(home)
                for readers, cost in self.outputs[one]:
                    by_device: dict[int, list[int]] = {}
                    for reader in readers:
                        by_device.setdefault(device_of[reader], []).append(reader)
                    for device in sorted(by_device):
                        if device == home or not cost:
                            arrive(by_device[device])
                            changed.add(device)
                            continue
                        at = home * devices + device
                        link[at] = max(link[at], now) + cost
                        heapq.heappush(events, (link[at], nodes + len(arrivals)))
                        arrivals.append(by_device[device])


def rank_upward(problem: PlacementProblem) -> list[float]:
    """Return the longest way from each node to the end, its own time and all costs included.

    A node counts with the mean of its times on the CPU and an accelerator, where it has both (Topcuoglu et al., 2002).
    Nodes on a cycle, and those before it, have what could be told without it.
    """
    before: list[list[tuple[int, float]]] = [[] for _ in range(len(problem))]
    waits = [0] * len(problem)
    for output in problem.outputs:
        waits[output.producer] += len(output.readers)
        for reader in output.readers:
            before[reader].append((output.producer, output.cost))
    rank = [0.0] * len(problem)
    for node in order_by_inputs(waits, lambda node: [producer for producer, _ in before[node]]):
        rank[node] += mean_time(problem, node)
        for producer, cost in before[node]:
            rank[producer] = max(rank[producer], rank[node] + cost)
    return rank


def mean_time(problem: PlacementProblem, node: int) -> float:
    """Return the mean of the finite times of a node."""
    finite = [time for time in (problem.cpu_time[node], problem.accelerator_time[node]) if time < inf]
    return sum(finite) / len(finite) if finite else 0.0
