"""The interface of a cost model: its questions, its answers, the executor's fixed times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from math import prod, sqrt
from typing import Any, Literal, NamedTuple, Protocol

Source = Literal["measured", "modelled", "guessed", "calibrated"]
Bound = Literal["latency", "memory", "arithmetic"]
Fixed = Literal["copy", "launch", "executor"]  # what a cost model estimates beside kernels
PeerWay = Literal["nvlink", "pcie", "host"]

# How far off times are taken to be in the mean where no table of errors tells: docs/costs.md has the reasons.
MEASURED_ERROR, GUESSED_ERROR, COPY_ERROR = 0.03, 0.5, 0.25


class Reliability(NamedTuple):
    """Record of where times come from; `error` is how far off they are in the mean, as a share of them."""

    source: Source
    error: float


class Tensor(NamedTuple):
    """Record of an input or output as far as costs need: all dimensions are known, where necessary by assumption.

    `size` is in bytes, 0 for types without a fixed size (string, resource, variant).
    """

    dtype: str
    shape: tuple[int, ...]
    size: int

    @property
    def elements(self) -> int:
        """Count the elements."""
        return prod(self.shape)


@dataclass(frozen=True, slots=True)
class OpCall:
    """Record of one execution of an op; `device_type` is "CPU" or "GPU", `name` the node's."""

    name: str
    op: str
    device_type: str
    attrs: Mapping[str, Any]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]


@dataclass(frozen=True, slots=True)
class CollectiveCall:
    """Record of a collective as far as costs need: `size` is what each of the `participants` puts in, in bytes.

    `op` is one of `costs.collectives.COLLECTIVES`. `device_type` is that of the members. `is_remote` where
    participants are in several processes, `is_on_card` where all are logical GPUs of one card.
    """

    op: str
    size: int
    participants: int
    device_type: str
    is_remote: bool = False
    is_on_card: bool = False


COMPILED = "_XlaCompiled"  # the attribute of a kernel that XLA made, and launches together with others


class KernelCost(NamedTuple):
    """Record of the cost of one execution, in seconds.

    `host_s` is time on a thread: a CPU kernel on one thread alone, or the launch of a GPU kernel. `device_s` is time
    on a GPU's compute stream, 0 for kernels that put nothing there. `shards` is how many threads would share the work
    on a CPU; TensorFlow runs GPU kernels whole, the textbook's GPUs are pools that share it too.
    `is_guess`: only bytes were counted, for lack of a formula. `averages_s` is what the executor's moving average of
    costs is at the first run of a step, at the second and so on, where that is not `host_s`. `runs_s` are the times of
    these runs, where each is known: the first iteration of a loop finds cold caches.
    `source` says where the times come from, `error` by how much they are off in the mean (None: see `off`). `bound`
    is what a GPU's kernel spends most of its time on, `share` how much of the data sheet's peak of that it reaches.
    Of what launches many kernels, as what XLA compiles does, `launches` counts them, `later_s` is how long the thread
    goes on launching when the device has begun, and `waits_s` how long of `device_s` none of them runs.
    `least_part_s` is what each thread's part of a CPU kernel takes at least, however many threads share it: all of them
    draw on one memory.
    """

    host_s: float
    device_s: float = 0.0
    shards: int = 1
    is_guess: bool = False
    averages_s: tuple[float, ...] = ()
    runs_s: tuple[float, ...] = ()
    source: Source = "guessed"
    error: float | None = None
    bound: Bound | None = None
    share: float = 0.0
    launches: int = 1
    later_s: float = 0.0
    waits_s: float = 0.0
    least_part_s: float = 0.0

    @property
    def off(self) -> float:
        """Return how far off the times are in the mean, assumed where nobody has measured it.

        >>> KernelCost(1.0, source="modelled", error=0.12).off, KernelCost(1.0).off
        (0.12, 0.5)
        """
        if self.error is not None:
            return self.error
        return MEASURED_ERROR if self.source == "measured" else GUESSED_ERROR


@dataclass(frozen=True, slots=True)
class Overheads:
    """Record of the fixed times of the executor, in seconds.

    `op_s`: bookkeeping of an op on its thread. `dead_s`: the same for a node that is dead, `to_dead_s`: what comes to
    it where the node before it on the thread was not dead.
    `first_s`: what comes to `op_s` where a node runs for the first time in a step, so that its data are in no cache.
    `code_s`: what comes to both where no node of that op type has run in the step, so that its code is in none either.
    `label_s`: what a trace takes for a byte of a node's label, `name_s` where the node runs for the first time in a
    step, for each long name there (common_runtime/step_stats_collector.cc, NodeExecStatsWrapper::Done).
    `shared_s`: what comes after a node where another thread has ended one since this thread did: what the executor
    keeps of all its threads, under locks, has to move from the other core's caches.
    `contention`: how many times as long all of this takes while another thread of the process is busy; not seconds.
    `hand_off_s`: until a parked thread starts on what was dispatched. `fork_s`: starting and joining the shards of a
    kernel. `poll_s`: until the host sees that a copy is done. `step_s`: between two steps.
    `dispatch_s`: on the thread that dispatches an op, for each. `wake_s`: there too, where that wakes a parked thread.
    `parked_s`: (seconds without work, `hand_off_s`, `wake_s`) by the first, where it is known how both grow: a core
    without work falls asleep ever deeper.
    `queue_s`: between what a thread was given and the next op that it takes from a queue.
    `spin_s`: how long a thread without work looks for some before it parks, in the median; `spin_spread`: the standard
    deviation of that, as a share of it. `spin_hand_off_s`: until it has found some.
    `after_s`: pairs (seconds of a kernel, seconds of bookkeeping more after it, since it swept the caches), by length.
    """

    op_s: float = 0.0
    hand_off_s: float = 0.0
    fork_s: float = 0.0
    poll_s: float = 0.0
    step_s: float = 0.0
    dead_s: float = 0.0
    to_dead_s: float = 0.0
    dispatch_s: float = 0.0
    wake_s: float = 0.0
    queue_s: float = 0.0
    spin_s: float = 0.0
    spin_spread: float = 0.0
    spin_hand_off_s: float = 0.0
    after_s: tuple[tuple[float, float], ...] = ()
    first_s: float = 0.0
    code_s: float = 0.0
    label_s: float = 0.0
    name_s: float = 0.0
    shared_s: float = 0.0
    contention: float = 1.0
    parked_s: tuple[tuple[float, float, float], ...] = ()

    def after(self, kernel_s: float) -> float:
        """Interpolate `after_s` for a kernel of some length: from nothing at 0, no more than the last value.

        >>> Overheads(after_s=((1.0, 0.5), (3.0, 1.5))).after(2.0)
        1.0
        """
        return interpolate_points(((0.0, 0.0), *self.after_s), kernel_s)

    def waking(self, idle_s: float) -> tuple[float, float]:
        """Return `hand_off_s` and `wake_s` for a thread that has been without work for a while.

        >>> Overheads(parked_s=((1.0, 10.0, 4.0), (3.0, 20.0, 6.0))).waking(2.0)
        (15.0, 5.0)
        """
        if not self.parked_s:
            return self.hand_off_s, self.wake_s
        hand_offs = [(idle, hand_off) for idle, hand_off, _ in self.parked_s]
        wakes = [(idle, wake) for idle, _, wake in self.parked_s]
        return interpolate_points(hand_offs, idle_s), interpolate_points(wakes, idle_s)

    def slower(self, factor: float) -> Overheads:
        """Return the times on a machine that is slower by a factor, whose memory takes as long.

        Waking a parked thread takes the square root of the factor as long (`calibration.derive_overheads`).

        >>> slower = Overheads(op_s=2.0, first_s=1.0, after_s=((1.0, 0.5),)).slower(1.5)
        >>> slower.op_s, slower.first_s, slower.after_s
        (3.0, 1.0, ((1.5, 0.75),))
        """
        same = (
            *("first_s", "code_s", "name_s", "after_s", "parked_s", "contention", "spin_spread"),
            *("hand_off_s", "wake_s"),
        )
        times = {f.name: getattr(self, f.name) * factor for f in fields(self) if f.name not in same}
        root = sqrt(factor)
        after = tuple((length * factor, more * factor) for length, more in self.after_s)
        parked = tuple((idle, hand_off * root, wake * root) for idle, hand_off, wake in self.parked_s)
        hand_off, wake = self.hand_off_s * root, self.wake_s * root
        return replace(self, **times, hand_off_s=hand_off, wake_s=wake, after_s=after, parked_s=parked)


def interpolate_points(points: Sequence[tuple[float, float]], at: float) -> float:
    """Interpolate between points by their first number; constant beyond the ends.

    >>> interpolate_points([(1.0, 10.0), (3.0, 20.0)], 2.0), interpolate_points([(1.0, 10.0), (3.0, 20.0)], 9.0)
    (15.0, 20.0)
    """
    if at <= points[0][0]:
        return points[0][1]
    for (short, less), (long, more) in pairwise(points):
        if at <= long:
            return less + (more - less) * (at - short) / (long - short)
    return points[-1][1]


class CostModel(Protocol):
    """Estimate the costs of kernels and copies."""

    @property
    def name(self) -> str:
        """Return the model's name as a short phrase."""
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
        """Estimate one execution."""
        ...

    def copy(self, size: int, source: str, target: str) -> float:
        """Estimate a copy in seconds; ends are "CPU" (host memory), "GPU", or "remote" (another process).

        The target is "same GPU" where two logical GPUs are on one card.
        """
        ...

    @property
    def peer_link(self) -> str:
        """Return the name of the links that join GPUs alone, "" where there are none."""
        ...

    @property
    def peer_way(self) -> PeerWay:
        """Return how a copy from a GPU of a process to another goes, as `copy` estimates it.

        "nvlink": over links that join GPUs alone, "pcie": over PCIe from one to the other, "host": over PCIe through
        the host's memory.
        """
        ...

    def assume_reliability(self, what: Fixed) -> Reliability:
        """Return where copies, launches or the executor's own times come from, and how far off they are in the mean."""
        ...

    def collective(self, call: CollectiveCall) -> KernelCost:
        """Estimate a member of a collective: `host_s` until it takes part, `device_s` from there to its end."""
        ...

    def memory(self, device_type: str) -> int:
        """Return the bytes that a device of this type has, 0 where they are not limited."""
        ...
