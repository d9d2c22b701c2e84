"""Findings about a simulated step, as records (`simplace.analysis.step_findings` finds them)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from simplace.explain.finding import Finding, Level

Awaited = Literal["launches", "copies", "collectives", "input", "devices"]
Bond = Literal["variable", "stream", "thread"]


@dataclass(frozen=True, slots=True)
class OneGpuStep:
    """Record of what a step saves if one GPU computes what several do: a share of its time, and how far off that is."""

    device: str
    saves: float
    error: float


@dataclass(frozen=True, slots=True)
class GpuWaits(Finding):
    """GPUs wait for longer than they compute, mostly for `cause`; `nodes` has what one waits for longest, if known.

    `shares` are those of the step, `kernels` counts what runs on each, `other` is the device that they wait for,
    "" where it is not one, or not the same for all. `alone` is set where one GPU would be quicker than several. The
    cost is the longest waiting.
    """

    rule: ClassVar[str] = "gpu-waits"
    level: ClassVar[Level] = "note"
    title: ClassVar[str] = "GPU waits"
    devices: tuple[str, ...]
    cause: Awaited
    shares: tuple[float, ...]
    kernels: tuple[int, ...]
    other: str = ""
    alone: OneGpuStep | None = None


@dataclass(frozen=True, slots=True)
class SerialReplicas(Finding):
    """GPUs do the same kinds of work one after another, in the order of `devices`: each waits for the one before.

    With "variable", `nodes` is the first update that the next one waits for; with "stream", a copy of what it needs is
    queued behind the work of the one before; with "thread", it is the launches. `alone` is set where one GPU would be
    quicker. The cost is what would be saved if all ran at once: of each pair the work of the shorter one.
    """

    rule: ClassVar[str] = "serial-replicas"
    title: ClassVar[str] = "replicas one after another"
    devices: tuple[str, ...]
    bond: Bond
    alone: OneGpuStep | None = None


@dataclass(frozen=True, slots=True)
class LaunchBoundLoop(Finding):
    """A loop runs many kernels on a GPU that are too small for it.

    Where the GPU waits for most of the loop, they take less time than the host takes to launch them, and the cost is
    that waiting. Else `is_busy`: most of the time goes to kernels that are bound by latency, and the cost is theirs.
    `kernels` counts those of all `trips`, `mean` is how long one takes, in nanoseconds, and `mean_error` how far off
    that is, as a share.
    """

    rule: ClassVar[str] = "launch-bound-loop"
    title: ClassVar[str] = "loop of tiny kernels"
    loop: str
    device: str
    trips: int
    kernels: int
    mean: int
    mean_error: float
    is_busy: bool = False


@dataclass(frozen=True, slots=True)
class UnusedWork(Finding):
    """Ops of a function compute on a device what nothing uses, so TensorFlow removes them before it runs.

    `ops` are their types with counts, `share` is that of their time in the time that the step would take with them.
    """

    rule: ClassVar[str] = "unused-work"
    title: ClassVar[str] = "unused results"
    ops: str
    device: str
    share: float
