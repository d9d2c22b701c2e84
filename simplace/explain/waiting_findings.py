"""Findings about a simulated step, as records (`simplace.analysis.step_findings` finds them)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from simplace.explain.finding import Finding, Level

Awaited = Literal["launches", "copies", "collectives", "input", "devices"]
Bond = Literal["variable", "stream", "thread"]


@dataclass(frozen=True, slots=True)
class GpuWaits(Finding):
    """A GPU waits for longer than it computes, mostly for `cause`; `nodes` has what it waits for longest, if known.

    `share` is that of the step, `kernels` counts what runs on the GPU, `other` is the device that it waits for, ""
    where it waits for something else. The cost is the waiting.
    """

    rule: ClassVar[str] = "gpu-waits"
    level: ClassVar[Level] = "note"
    title: ClassVar[str] = "GPU waits"
    device: str
    cause: Awaited
    share: float
    kernels: int
    other: str = ""


@dataclass(frozen=True, slots=True)
class SerialReplicas(Finding):
    """GPUs do the same kinds of work one after another: those `later` wait for the `earlier`.

    With "variable", `nodes` is the update of the earlier one that the later one waits for; with "stream", a copy of
    what it needs is queued behind the work of the earlier one; with "thread", it is the launches. The cost is the work
    of the shorter one: what would be saved if both ran at once.
    """

    rule: ClassVar[str] = "serial-replicas"
    title: ClassVar[str] = "replicas one after another"
    earlier: str
    later: str
    bond: Bond


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
