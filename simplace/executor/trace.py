"""The record of a simulated run: spans on tracks, and memory over time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple, get_args

TrackKind = Literal["worker", "intra", "compute", "h2d", "d2h", "d2d", "link", "collective"]
SpanKind = Literal["op", "launch", "kernel", "shard", "copy", "dead", "collective"]
Why = Literal["start", "dependency", "thread", "launch", "stream", "link", "member"]

_KINDS: tuple[TrackKind, ...] = get_args(TrackKind)


@dataclass(frozen=True, slots=True)
class Track:
    """Record of a track, which runs one span at a time: a thread, a stream, a link between processes.

    `owner` is a device's full name, or a process ("/job:localhost/replica:0/task:0") for threads shared by devices.
    """

    name: str
    kind: TrackKind
    owner: str


class Span(NamedTuple):
    """Record of what a track did from `start` to `end`, in nanoseconds.

    `node` is a node of the partitioned graph. `ready` is when its inputs were there, `why` what it waited for after
    that ("dependency": for nothing, "launch": for its turn to launch on a card, "member": for the other members of its
    collective), `cause` the number of the span that ended the wait (-1: none). `step` counts from 0; `iteration` names
    the iterations of loops around it, outermost first. A span of kind "dead" is the bookkeeping of a node on a branch
    that is not taken.
    """

    node: int
    track: int
    kind: SpanKind
    start: int
    end: int
    ready: int
    cause: int
    why: Why
    step: int = 0
    iteration: str = ""

    @property
    def duration(self) -> int:
        """Return the length in nanoseconds."""
        return self.end - self.start


class PassedLink(NamedTuple):
    """Record of a link that several GPUs, or tasks, share: their short names, and bytes/s in each direction.

    `bandwidth` is infinite where a copy's time does not depend on its bytes.
    """

    name: str
    bandwidth: float
    sharers: tuple[str, ...]


class SharedCopy(NamedTuple):
    """Record of a copy that passed shared links: `alone` is how long it takes on its own link alone, in ns.

    Its first byte moved at `moves_at`. `ways` has 2 i for a link i that it left its sharers by, 2 i + 1 for one that it
    came to them by. `slowed_by` is the link that slowed it down most, -1 where none did, `others` the tracks whose
    copies had a share of that link then: none where the link is slower than what it joins. Each member of a collective
    has one, with the ways that it passes itself: `slowed_by` may be a link of other members, or one that they share.
    """

    alone: int
    moves_at: int
    ways: tuple[int, ...]
    slowed_by: int = -1
    others: tuple[int, ...] = ()


PERMANENT = -1
SCRATCH = -2
ARGUMENTS = -3  # of argument i of a call that is the whole graph: i less


class KeptTensor(NamedTuple):
    """Record of what is in the memory of a device as the step begins; `node` and `slot` as of a `MemoryChange`."""

    device: str
    size: int
    node: int
    slot: int = PERMANENT


class MemoryChange(NamedTuple):
    """Record that a tensor appeared in, or left, the memory of a device at `time` (nanoseconds).

    `node` and `slot` name the output that was allocated; `change` is in bytes. The slot of constants, arguments and
    variables, of which the memory has some before the step begins, is `PERMANENT`, that of what a kernel takes while it
    runs `SCRATCH`. A call that is the whole graph has no nodes for its arguments: see `ARGUMENTS`.
    """

    time: int
    device: str
    change: int
    node: int
    slot: int
    span: int


@dataclass(frozen=True)
class Trace:
    """Record of a run: spans in the order of their start on the host, `steps` the end of each step in nanoseconds.

    `links` are those that several GPUs or tasks share, `shared` has by span what passed any of them.
    """

    tracks: tuple[Track, ...]
    spans: tuple[Span, ...]
    memory: tuple[MemoryChange, ...]
    steps: tuple[int, ...]
    resident: tuple[KeptTensor, ...] = ()
    links: tuple[PassedLink, ...] = ()
    shared: Mapping[int, SharedCopy] = field(default_factory=dict)

    @property
    def makespan(self) -> int:
        """Return the end of the last step in nanoseconds."""
        return self.steps[-1] if self.steps else 0

    @cached_property
    def by_track(self) -> tuple[tuple[int, ...], ...]:
        """List the spans of each track by start."""
        lists: list[list[int]] = [[] for _ in self.tracks]
        for i, span in enumerate(self.spans):
            lists[span.track].append(i)
        return tuple(tuple(sorted(one, key=lambda i: (self.spans[i].start, i))) for one in lists)

    @cached_property
    def track_order(self) -> tuple[int, ...]:
        """Order the tracks for display: threads of processes, each device's threads and streams, collectives, links."""

        def key(i: int) -> tuple[int, str, int, int]:
            track = self.tracks[i]
            place = {"link": 3, "collective": 2}.get(track.kind, 1 if "/device:" in track.owner else 0)
            return place, track.owner, _KINDS.index(track.kind), i

        return tuple(sorted(range(len(self.tracks)), key=key))

    def __str__(self) -> str:
        return "\n".join(
            f"{span.start:>9} {span.end:>9} {self.tracks[span.track].name} {span.kind} {span.node}"
            for span in self.spans
        )
