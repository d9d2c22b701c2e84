"""The silent failures as data: one record per kind of finding.

What a placement alone shows is in `simplace.explain.findings`; here is what Python, the environment and a saved file
add to it. Sentences are made of all of them in `simplace.doctor.advice`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from simplace.explain.copy_findings import HostRoundTrip, VariablesFar
from simplace.explain.eager_findings import EagerCopiesEachTime
from simplace.explain.failures import (
    NoPartner,
    NotCompilable,
    NotCopied,
    OutOfMemory,
    RefusedOp,
    RefusedSetting,
    UnequalGrowth,
    XlaOtherDevice,
    XlaRefuses,
)
from simplace.explain.finding import Finding, Level
from simplace.explain.findings import DetourOverCpu, HostMemory, IdleGpu, NoKernel, NoSuchDevice, RequestOverruled
from simplace.explain.gradient_findings import GradientsElsewhere, UpdatesElsewhere
from simplace.explain.slot_findings import SlotsElsewhere
from simplace.explain.sparse_findings import SparseGather
from simplace.explain.waiting_findings import GpuWaits, LaunchBoundLoop, SerialReplicas, UnusedWork


@dataclass(frozen=True, slots=True)
class LateLogFlag(Finding):
    """The placement log was switched on after TensorFlow's context had been made."""

    rule: ClassVar[str] = "late-log-flag"


@dataclass(frozen=True, slots=True)
class HiddenLog(Finding):
    """The log level hides the placement log that was switched on; `inherited`: the environment set it."""

    rule: ClassVar[str] = "hidden-log"
    log_level: str
    inherited: bool


@dataclass(frozen=True, slots=True)
class LateSetting(Finding):
    """TensorFlow refused a setting, and the program went on without it; `started` as in `RefusedSetting`."""

    rule: ClassVar[str] = "late-setting"
    setting: str
    error: str
    started: str


@dataclass(frozen=True, slots=True)
class BakedDevice(Finding):
    """A saved graph requests a device that is not there; `is_refused`: so TensorFlow refuses to place it."""

    rule: ClassVar[str] = "baked-device"
    request: str
    there: str
    is_refused: bool


@dataclass(frozen=True, slots=True)
class UnknownColocation(Finding):
    """A node is to be colocated with one that does not exist."""

    rule: ClassVar[str] = "unknown-colocation"
    wanted: str


@dataclass(frozen=True, slots=True)
class LostScope(Finding):
    """Python replaced the device of a `tf.device` by that of the op `leader`, before any placement."""

    rule: ClassVar[str] = "lost-scope"
    request: str
    got: str
    leader: str


@dataclass(frozen=True, slots=True)
class LayerOutsideScope(Finding):
    """A layer got its variables under a device scope and is called outside of it, at `called_at`."""

    rule: ClassVar[str] = "layer-outside-scope"
    layer: str
    request: str
    called_at: str


@dataclass(frozen=True, slots=True)
class DatasetScope(Finding):
    """A device scope around a dataset's transformation does not reach the function given to it."""

    rule: ClassVar[str] = "dataset-scope"
    request: str
    transformation: str
    ops: str


@dataclass(frozen=True, slots=True)
class Retraced(Finding):
    """A function was traced `times` times, and compiled by XLA as often if `is_compiled`; `shapes` counts those of its
    tensors. `is_of_keras`: it is a step that Keras makes.
    """

    rule: ClassVar[str] = "retraced"
    times: int
    shapes: int
    is_compiled: bool
    is_of_keras: bool = False


@dataclass(frozen=True, slots=True)
class EagerLoop(Finding):
    """`ops` ops of the user's lines ran again and again outside of functions: `runs` times in all, the most frequent
    ones `times` times.
    """

    rule: ClassVar[str] = "eager-loop"
    lines: tuple[str, ...]
    ops: int
    times: int
    runs: int


@dataclass(frozen=True, slots=True)
class ProgramRefused(Finding):
    """TensorFlow does not place the program; `because` names the constraints that conflict and how to fix it."""

    rule: ClassVar[str] = "refused"
    level: ClassVar[Level] = "error"
    message: str
    because: str


ALL_FINDINGS: tuple[type[Finding], ...] = (
    ProgramRefused, RefusedOp, XlaOtherDevice, NotCompilable, XlaRefuses, NotCopied, NoPartner, OutOfMemory,
    RefusedSetting, UnequalGrowth, LateSetting, LateLogFlag, HiddenLog, BakedDevice, NoSuchDevice, NoKernel,
    RequestOverruled, UnknownColocation, LostScope, LayerOutsideScope, DatasetScope, Retraced, EagerLoop,
    GradientsElsewhere,
    UpdatesElsewhere, SlotsElsewhere, VariablesFar, SparseGather, SerialReplicas, LaunchBoundLoop, DetourOverCpu,
    UnusedWork, EagerCopiesEachTime, HostRoundTrip, GpuWaits, HostMemory, IdleGpu,
)  # fmt: skip
