"""List schedules within the memory of the devices."""

from __future__ import annotations

import heapq
from math import inf

from simplace.optimize.grouped import GroupedProblem
from simplace.optimize.problem import CPU
from simplace.optimize.step_makespan import rank_upward


def schedule_by_rank(grouped: GroupedProblem) -> list[int]:
    """Return the device of each group by HEFT: the node of largest upward rank goes where it ends first.

    The first node of a group decides for it (Topcuoglu et al., "Performance-Effective and Low-Complexity Task
    Scheduling for Heterogeneous Computing", 2002). Where the memory of all accelerators is used up and the CPU will not
    do, the device of a group is its first allowed one, and the placement breaks the limits.
    """
    rank = rank_upward(grouped.problem)
    schedule = _ListSchedule(grouped)
    ready = [(-rank[node], node) for node in schedule.pop_ready()]
    heapq.heapify(ready)
    while ready:
        node = heapq.heappop(ready)[1]
        schedule.place(node, min(schedule.choices(node), key=lambda device: (schedule.end_on(node, device), -device)))
        for other in schedule.pop_ready():
            heapq.heappush(ready, (-rank[other], other))
    return schedule.device_of


def schedule_by_start(grouped: GroupedProblem) -> list[int]:
    """Return the device of each group by m-ETF: the pair of a ready node and a device that can start first is next.

    Of equal starts, the one that ends first, then the node of largest upward rank. (Jeon et al., "Baechi: Fast Device
    Placement of Machine Learning Graphs", SoCC 2020.)
    """
    rank = rank_upward(grouped.problem)
    schedule = _ListSchedule(grouped)
    ready: dict[int, dict[int, float]] = {}  # of each ready node, when its inputs are there, by device
    while True:
        for node in schedule.pop_ready():
            ready[node] = {device: schedule.inputs_on(node, device) for device in grouped.problem.devices}
        if not ready:
            return schedule.device_of
        best = min(
            (
                max(inputs[device], schedule.free[device][0]),
                schedule.end_after(node, device, inputs[device]),
                -rank[node],
                node,
                device,
            )
            for node, inputs in ready.items()
            for device in schedule.choices(node)
        )
        node, device = best[-2:]
        del ready[node]
        schedule.place(node, device)


def pack_by_bytes(grouped: GroupedProblem) -> list[int]:
    """Return the device of each group by first fit: the largest first, on the CPU only what has no other place.

    It is there for its memory alone.
    """
    left = [inf, *(grouped.problem.accelerator_bytes for _ in grouped.accelerators)]
    device_of = [0] * len(grouped)
    for group in sorted(range(len(grouped)), key=lambda group: (CPU in grouped.allowed[group], -grouped.bytes[group])):
        fitting = [device for device in grouped.allowed[group] if left[device] >= grouped.bytes[group]]
        device_of[group] = next((device for device in fitting if device != CPU), (fitting or grouped.allowed[group])[0])
        left[device_of[group]] -= grouped.bytes[group]
    return device_of


class _ListSchedule:
    """A schedule that grows by a node at a time: when devices are free, and which memory is left."""

    def __init__(self, grouped: GroupedProblem) -> None:
        problem = grouped.problem
        self.grouped = grouped
        self.device_of = [-1] * len(grouped)
        self.group_of = grouped.group_of_nodes()
        self.left = [inf, *(problem.accelerator_bytes for _ in grouped.accelerators)]
        # When each core is free: a heap, so that the first is the earliest.
        self.free = [[0.0] * (problem.cpu_cores if device == CPU else 1) for device in problem.devices]
        self.end = [0.0] * len(problem)
        self.before: list[list[tuple[int, float]]] = [[] for _ in range(len(problem))]
        self.after: list[list[int]] = [[] for _ in range(len(problem))]
        for output in problem.outputs:
            for reader in output.readers:
                self.before[reader].append((output.producer, output.cost))
                self.after[output.producer].append(reader)
        self.waits = [len(producers) for producers in self.before]
        self.new = [node for node, count in enumerate(self.waits) if not count]

    def pop_ready(self) -> list[int]:
        """Return the nodes that have become ready since the last call."""
        new, self.new = self.new, []
        return new

    def choices(self, node: int) -> list[int]:
        """Return the devices that a node can go to."""
        group = self.group_of[node]
        if self.device_of[group] >= 0:
            return [self.device_of[group]]
        allowed = self.grouped.allowed[group]
        return [device for device in allowed if self.left[device] >= self.grouped.bytes[group]] or [allowed[0]]

    def inputs_on(self, node: int, device: int) -> float:
        """Return when the inputs of a node are on a device."""
        return max(
            (
                self.end[producer] + (cost if self.device_of[self.group_of[producer]] != device else 0.0)
                for producer, cost in self.before[node]
            ),
            default=0.0,
        )

    def end_after(self, node: int, device: int, inputs: float) -> float:
        """Return when a node would end on a device that has its inputs then."""
        return max(inputs, self.free[device][0]) + self.grouped.problem.time_on(node, device)

    def end_on(self, node: int, device: int) -> float:
        """Return when a node would end on a device."""
        return self.end_after(node, device, self.inputs_on(node, device))

    def place(self, node: int, device: int) -> None:
        """Schedule a node on a device, which its group has from then on."""
        group = self.group_of[node]
        if self.device_of[group] < 0:
            self.device_of[group] = device
            self.left[device] -= self.grouped.bytes[group]
        self.end[node] = self.end_on(node, device)
        heapq.heapreplace(self.free[device], self.end[node])
        for reader in self.after[node]:
            self.waits[reader] -= 1
            if not self.waits[reader]:
                self.new.append(reader)
