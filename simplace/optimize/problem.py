"""A placement problem: nodes with times and bytes, outputs with a transfer cost, the limits of the devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

CPU = 0  # the device of that number; accelerators are 1, 2, ...


@dataclass(frozen=True)
class Output:
    """Output of a node: who makes it, who reads it, and what a transfer from or to an accelerator costs."""

    producer: int
    readers: tuple[int, ...]
    cost: float = 0.0


@dataclass(frozen=True)
class PlacementProblem:
    """Nodes 0, 1, ... that are to be placed on the CPU (device 0) or on one of several equal accelerators (1, 2, ...).

    Times and costs share one unit, whichever it is. A time of `math.inf` means that the node has no kernel there. Nodes
    of one group share a device. The CPU has no limit of bytes. What a node waits for without data (a control edge) is
    an output of cost 0.
    """

    accelerators: int
    accelerator_bytes: float  # of each
    accelerator_time: tuple[float, ...]  # by node
    cpu_time: tuple[float, ...]  # by node
    node_bytes: tuple[float, ...]  # by node: what it needs on an accelerator
    outputs: tuple[Output, ...]
    group_of: tuple[int, ...]  # by node: a number that the nodes of its colocation group share
    pinned: Mapping[int, int] = field(default_factory=dict)  # node: its device
    cpu_cores: int = 1  # nodes that the CPU runs at once; only a makespan depends on it

    def __post_init__(self) -> None:
        columns = (self.accelerator_time, self.cpu_time, self.node_bytes, self.group_of)
        assert len({len(column) for column in columns}) == 1, "a value for each node"
        assert all(0 <= device <= self.accelerators for device in self.pinned.values()), "pinned to a device there is"

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self.group_of)

    @property
    def devices(self) -> range:
        """Return the numbers of all devices."""
        return range(self.accelerators + 1)

    def time_on(self, node: int, device: int) -> float:
        """Return how long a node takes on a device."""
        return self.cpu_time[node] if device == CPU else self.accelerator_time[node]

    def keeps_limits(self, device_of: Sequence[int]) -> bool:
        """Return whether a placement keeps kernels, pins, groups and the bytes of each accelerator."""
        device_of_group: dict[int, int] = {}
        held = [0.0] * len(self.devices)
        for node, device in enumerate(device_of):
            held[device] += self.node_bytes[node]
            together = device_of_group.setdefault(self.group_of[node], device) == device
            if not together or self.time_on(node, device) == inf or self.pinned.get(node, device) != device:
                return False
        return all(each <= self.accelerator_bytes for each in held[1:])


@dataclass(frozen=True)
class Solution:
    """Answer to a placement problem: the device of each node, its value, and what no placement can go below."""

    device_of: tuple[int, ...]
    value: float
    bound: float
    method: str

    @property
    def gap(self) -> float:
        """Return how far the value may be above the best possible, as a part of it."""
        return (self.value - self.bound) / self.value if self.value > 0 else 0.0
