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
        # A node that waits for nothing and takes no time on the CPU holds nothing up there.
        free = {node for node, time in enumerate(problem.cpu_time) if not time} - {reader for _, reader in edges}
        self.cpu_nodes = [[node for node in nodes if node not in free] for nodes in grouped.members]
        self.before: list[list[int]] = [[] for _ in range(len(problem))]
        self.free_before: list[list[int]] = [[] for _ in range(len(problem))]
        self.after: list[list[int]] = [[] for _ in range(len(problem))]
        self.feeds: list[list[tuple[int, bool]]] = [[] for _ in grouped.members]  # group, from a free node; by edge
        self.reads: list[list[tuple[int, bool]]] = [[] for _ in grouped.members]
        for producer, reader in edges:
            if producer in free:
                self.free_before[reader].append(producer)
            else:
                self.before[reader].append(producer)
                self.after[producer].append(reader)
            one, other = self.group_of[producer], self.group_of[reader]
            if one != other:
                self.feeds[one].append((other, producer in free))
                self.reads[other].append((one, producer in free))
        super().__init__(grouped, device_of)

    def set_all(self, device_of: Sequence[int]) -> None:
        """Take over another placement."""
        super().set_all(device_of)
        self.between = [[0] * self.width for _ in range(self.width)]  # edges that hold up, by device and device
        for group, others in enumerate(self.feeds):
            for other, is_free in others:
                if device_of[group] or not is_free:
                    self.between[device_of[group]][device_of[other]] += 1
        self.on_cpu = {group: None for group, device in enumerate(device_of) if device == CPU}
        # The block of each node, or (beyond the devices) itself.
        self.unit = [device_of[group] or self.width + node for node, group in enumerate(self.group_of)]

    def move(self, group: int, to: int, added: tuple[float, float]) -> None:
        """Move a group; `added` is what `try_move` says."""
        device_of, between = self.device_of, self.between
        old = device_of[group]
        for other, is_free in self.feeds[group]:
            device = device_of[other]
            if old or not is_free:
                between[old][device] -= 1
            if to or not is_free:
                between[to][device] += 1
        for other, is_free in self.reads[group]:
            device = device_of[other]
            if device or not is_free:
                between[device][old] -= 1
                between[device][to] += 1
        if old == CPU:
            del self.on_cpu[group]
        if to == CPU:
            self.on_cpu[group] = None
        for node in self.grouped.members[group]:
            self.unit[node] = to or self.width + node
        super().move(group, to, added)

    def measure(self) -> float:
        """Return the latency, infinity if a path leaves an accelerator and comes back."""
        width, unit, between = self.width, self.unit, self.between
        after: list[list[int]] = [[] for _ in range(width)]  # of a block: other units
        waits = [0] * (width + len(unit))
        for device in range(1, width):
            row = between[device]
            waits[device] += between[CPU][device]
            for other in range(1, width):
                if row[other] and other != device:
                    if between[other][device]:
                        return inf
                    after[device].append(other)
                    waits[other] += 1
        ready = [device for device in range(1, width) if not waits[device]]
        left = width - 1
        for group in self.on_cpu:
            for node in self.cpu_nodes[group]:
                left += 1
                before = self.before[node]
                waits[width + node] = len(before)
                for producer in before:
                    if unit[producer] < width:
                        after[unit[producer]].append(width + node)
                for producer in self.free_before[node]:  # in a block, it ends with the block
                    if unit[producer] < width:
                        after[unit[producer]].append(width + node)
                        waits[width + node] += 1
                if not waits[width + node]:
                    ready.append(width + node)
        return self._follow(ready, waits, after, left)

    def _follow(self, ready: list[int], waits: list[int], after: list[list[int]], left: int) -> float:
        """End units one after the other; return when the last ends, infinity if not all `left` can."""
        width, unit = self.width, self.unit
        cpu_time, loads, after_node = self.grouped.problem.cpu_time, self.loads, self.after
        start = [0.0] * len(waits)
        end = 0.0
        while ready:
            one = ready.pop()
            left -= 1
            if one < width:
                done, following = start[one] + loads[one], after[one]
            else:
                done = start[one] + cpu_time[one - width]
                following = [unit[reader] for reader in after_node[one - width]]
            if done > end:
                end = done
            for other in following:
                if start[other] < done:
                    start[other] = done
                waits[other] -= 1
                if not waits[other]:
                    ready.append(other)
        return end if not left else inf
