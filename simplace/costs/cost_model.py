"""What a cost model is asked and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Tensor:
    """Describe an input or output as far as costs need: all dimensions are known, where necessary by assumption.

    `size` is in bytes, 0 for types without a fixed size (string, resource, variant).
    """

    dtype: str
    shape: tuple[int, ...]
    size: int

    @property
    def elements(self) -> int:
        """Count the elements."""
        count = 1
        for dim in self.shape:
            count *= dim
        return count


@dataclass(frozen=True, slots=True)
class OpCall:
    """Describe one execution of an op; `device_type` is "CPU" or "GPU", `name` the node's."""

    name: str
    op: str
    device_type: str
    attrs: Mapping[str, Any]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]


@dataclass(frozen=True, slots=True)
class KernelCost:
    """Say what one execution costs, in seconds.

    `host_s` is time on a thread: a CPU kernel on one thread alone, or the launch of a GPU kernel. `device_s` is time
    on a GPU's compute stream, 0 for kernels that put nothing there. `shards` is how many threads would share the work
    on a CPU; TensorFlow runs GPU kernels whole, the textbook's GPUs are pools that share it too.
    `is_guess` says that only bytes were counted, for lack of a formula. `average_s` is what the executor's moving
    average of costs has seen of it where that is not `host_s` (None).
    """

    host_s: float
    device_s: float = 0.0
    shards: int = 1
    is_guess: bool = False
    average_s: float | None = None


@dataclass(frozen=True, slots=True)
class Overheads:
    """Hold the fixed times of the executor, in seconds.

    `op_s`: bookkeeping of an op on its thread. `dead_s`: the same for a node that is dead.
    `hand_off_s`: until a parked thread starts on what was dispatched. `fork_s`: starting and joining the shards of a
    kernel. `poll_s`: until the host sees that a copy is done. `step_s`: between two steps.
    `dispatch_s`: on the thread that dispatches an op, for each. `wake_s`: there too, where that wakes a parked thread.
    `queue_s`: between what a thread was given and the next op that it takes from a queue.
    `spin_s`: how long a thread without work looks for some before it parks, `spin_hand_off_s`: until it has found it.
    `after_s`: pairs (seconds of a kernel, seconds of bookkeeping more after it, since it swept the caches), by length.
    """

    op_s: float = 0.0
    hand_off_s: float = 0.0
    fork_s: float = 0.0
    poll_s: float = 0.0
    step_s: float = 0.0
    dead_s: float = 0.0
    dispatch_s: float = 0.0
    wake_s: float = 0.0
    queue_s: float = 0.0
    spin_s: float = 0.0
    spin_hand_off_s: float = 0.0
    after_s: tuple[tuple[float, float], ...] = ()

    def after(self, kernel_s: float) -> float:
        """Interpolate `after_s` for a kernel of some length: from nothing at 0, no more than the last value.

        >>> Overheads(after_s=((1.0, 0.5), (3.0, 1.5))).after(2.0)
        1.0
        """
        pairs = self.after_s
        if not pairs or kernel_s <= pairs[0][0]:
            return pairs[0][1] * kernel_s / pairs[0][0] if pairs and pairs[0][0] else 0.0
        for (short, less), (long, more) in pairwise(pairs):
            if kernel_s <= long:
                return less + (more - less) * (kernel_s - short) / (long - short)
        return pairs[-1][1]


class CostModel(Protocol):
    """Price kernels and copies."""

    @property
    def name(self) -> str:
        """Name the model in a few words for people."""
        ...

    @property
    def overheads(self) -> Overheads:
        """Return the executor's fixed times that go with these costs."""
        ...

    @property
    def clock(self) -> float:
        """Return the cycles a second of a CPU core: TensorFlow counts an op's cost in cycles."""
        ...

    def kernel(self, call: OpCall) -> KernelCost:
        """Price one execution."""
        ...

    def copy(self, size: int, source: str, target: str) -> float:
        """Price a copy in seconds; ends are "CPU" (host memory), "GPU", or "remote" for a target in another process."""
        ...

    def memory(self, device_type: str) -> int:
        """Return the bytes that a device of this type has, 0 where they are not limited."""
        ...
