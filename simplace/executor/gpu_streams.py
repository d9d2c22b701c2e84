"""The streams of GPUs and the links between processes: each serves one thing at a time, in the order of asking.

Mirrors tensorflow/core/common_runtime/gpu/gpu_util.cc: a copy to the host waits for what its source has enqueued so
far, a copy from the host for what its destination has, a copy between GPUs for both; copies of one direction on one
GPU queue up on one stream. When a kernel runs is known when it is enqueued.
"""

from __future__ import annotations

from dataclasses import dataclass

from simplace.devices.device_set import Device
from simplace.executor.trace import TrackKind, Why
from simplace.executor.trace_recorder import TraceRecorder


@dataclass(slots=True, eq=False)
class Stream:
    """Record of one queue: its track, when all that was enqueued is done, and the last span on it."""

    track: int
    free_at: int = 0
    last_span: int = -1


@dataclass(frozen=True, slots=True)
class Start:
    """Record of when enqueued work starts, and what delayed it."""

    time: int
    why: Why
    cause: int


def start_on(stream: Stream, ready: int, released_by: int, waits_for: tuple[Stream, ...], why_own: Why) -> Start:
    """Find the start of work enqueued at `ready`; of equal waits the stream's own queue is named.

    >>> start_on(Stream(0, free_at=5, last_span=7), 3, 1, (), "stream")
    Start(time=5, why='stream', cause=7)
    """
    start = Start(ready, "dependency", released_by)
    if stream.free_at > start.time:
        start = Start(stream.free_at, why_own, stream.last_span)
    for other in waits_for:
        if other.free_at > start.time:
            start = Start(other.free_at, "stream", other.last_span)
    return start


class Streams:
    """Make streams and links when they are first used."""

    def __init__(self, recorder: TraceRecorder) -> None:
        self._recorder = recorder
        self._made: dict[tuple[str, str], Stream] = {}

    def compute(self, device: Device) -> Stream:
        """Return the stream of a GPU's kernels."""
        return self.of(device.name, "compute", f"{device.short} compute")

    def collective(self, device: Device) -> Stream:
        """Return the stream of a device's collectives."""
        return self.of(device.name, "collective", f"{device.short} collectives")

    def of(self, owner: str, kind: TrackKind, name: str) -> Stream:
        """Return the stream of a kind that belongs to a device, or to a pair of processes."""
        key = (owner, kind)
        if key not in self._made:
            self._made[key] = Stream(self._recorder.track(name, kind, owner))
        return self._made[key]

    @property
    def last_end(self) -> int:
        """Return when all streams will be done."""
        return max((stream.free_at for stream in self._made.values()), default=0)
