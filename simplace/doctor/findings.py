"""What goes wrong without a word, as data: one record per kind of finding.

Sentences are made of them in `simplace.doctor.sentences`. Devices are spelled as the program wrote them where they are
requests, and in short ("GPU:0") where they are devices of the run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from simplace.verdicts import Level


@dataclass(frozen=True, slots=True)
class Finding:
    """Say where a finding is: the user's line ("" unknown), the program and the nodes concerned (() for none)."""

    rule: ClassVar[str] = ""
    level: ClassVar[Level] = "warning"
    source: str
    program: str
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LateLogFlag(Finding):
    """The placement log was asked for after TensorFlow's context had been made."""

    rule: ClassVar[str] = "late-log-flag"


@dataclass(frozen=True, slots=True)
class HiddenLog(Finding):
    """The log level hides the placement log that was asked for; `inherited` says that the environment set it."""

    rule: ClassVar[str] = "hidden-log"
    log_level: str
    inherited: bool


@dataclass(frozen=True, slots=True)
class NoSuchDevice(Finding):
    """A request names a device that is not there, and soft placement took another without a warning.

    `got` is "" for a scope around eager code, whose ops are placed one by one.
    """

    rule: ClassVar[str] = "no-such-device"
    request: str
    got: str
    there: str


@dataclass(frozen=True, slots=True)
class BakedDevice(Finding):
    """A saved graph asks for a device that is not there; `is_refused` says that TensorFlow won't place it therefore."""

    rule: ClassVar[str] = "baked-device"
    request: str
    there: str
    is_refused: bool


@dataclass(frozen=True, slots=True)
class NoKernel(Finding):
    """A request could not be met, since an op has no kernel there; `instead` is a data type that has one, or ""."""

    rule: ClassVar[str] = "no-kernel"
    request: str
    got: str
    op: str
    instead: str


@dataclass(frozen=True, slots=True)
class RequestOverruled(Finding):
    """A request gave way to that of a colocated node or resource; `because` is the reason in a sentence."""

    rule: ClassVar[str] = "request-overruled"
    request: str
    got: str
    because: str


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
class DetourOverCpu(Finding):
    """Ops between GPU ops run on the CPU; `because` is the reason in a sentence."""

    rule: ClassVar[str] = "detour-over-cpu"
    ops: str
    device: str
    because: str


@dataclass(frozen=True, slots=True)
class HostMemory(Finding):
    """Ops run on a GPU while their int32 results live in host memory."""

    rule: ClassVar[str] = "host-memory"
    level: ClassVar[Level] = "note"
    ops: str


@dataclass(frozen=True, slots=True)
class IdleGpu(Finding):
    """No op runs on a GPU: `requests` counts the ops that asked for it and went elsewhere."""

    rule: ClassVar[str] = "idle-gpu"
    level: ClassVar[Level] = "note"
    device: str
    requests: int


@dataclass(frozen=True, slots=True)
class Refused(Finding):
    """TensorFlow does not place the program; `because` says which wishes clash and what would help."""

    rule: ClassVar[str] = "refused"
    level: ClassVar[Level] = "error"
    message: str
    because: str


ALL_FINDINGS: tuple[type[Finding], ...] = (
    Refused, LateLogFlag, HiddenLog, BakedDevice, NoSuchDevice, NoKernel, RequestOverruled, UnknownColocation,
    LostScope, LayerOutsideScope, DatasetScope, DetourOverCpu, HostMemory, IdleGpu,
)  # fmt: skip
