"""Run copies and collectives on their streams and links: how long each takes is known when it has ended.

Each stream or link serves one at a time, in the order of asking, and waits for what the compute streams of its GPUs had
enqueued when it was asked for (`gpu_streams`). A copy begins when the one before it has ended, and ends when all its
bytes have passed, which takes longer where others pass the same links. A collective is in the queues of all its
members, and begins when it is the first in each.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from simplace.executor.collective_runs import Arrival
from simplace.executor.events import Events
from simplace.executor.gpu_streams import Stream, start_on
from simplace.executor.link_routes import Route, Routes
from simplace.executor.link_sharing import LinkSharing
from simplace.executor.trace import Span, Why
from simplace.executor.trace_recorder import TraceRecorder


@dataclass(frozen=True, slots=True, eq=False)
class QueuedTransfer:
    """Record of a copy or a collective that was asked for, with a span for each of its streams.

    `ways` are by span those that it passes, in the order of the streams; the last span starts when it was asked for,
    and has the cause of that. `why_own` tells of a wait for the own queue. `ended` and `begun` are called when it has
    ended, and when it begins.
    """

    route: Route
    ways: Mapping[int, tuple[int, ...]]
    streams: tuple[Stream, ...]
    waits_for: tuple[Stream, ...]
    why_own: Why
    ended: Callable[[], None]
    begun: Callable[[], None] = lambda: None


class TransferQueues:
    """Run copies and collectives, one at a time on each stream or link."""

    def __init__(self, routes: Routes, events: Events, recorder: TraceRecorder) -> None:
        self.routes = routes
        self.sharing = LinkSharing(routes.links, events, recorder)
        recorder.links = routes.links
        self.events = events
        self.recorder = recorder
        self._queues: dict[int, deque[QueuedTransfer]] = {}  # by track; the first one runs

    def enqueue(self, transfer: QueuedTransfer) -> None:
        """Add a transfer to the queues of its streams; what it waits for is taken as it is now."""
        asked = replace(transfer, waits_for=tuple(replace(each) for each in transfer.waits_for))
        for queue in self._list_queues(asked):
            queue.append(asked)
        self._serve([asked])

    def enqueue_collective(
        self,
        arrived: Sequence[Arrival],
        streams: Sequence[Stream],
        waits_for: tuple[Stream, ...],
        step: int,
        ended: Callable[[list[int]], None],
    ) -> None:
        """Add the collective of members that have come, with a span on the stream of each; `ended` is given these."""
        now, cause = self.events.now, arrived[-1].released_by
        spans = [
            self.recorder.add(Span(one.activation.node, stream.track, "collective", now, now, one.time, cause,
                                    "dependency", step, str(one.activation.iteration)))
            for one, stream in zip(arrived, streams, strict=True)
        ]  # fmt: skip
        found = [self.routes.of_member[one.activation.node] for one in arrived]
        ways = {span: own for span, (_, own) in zip(spans, found, strict=True)}
        self.enqueue(QueuedTransfer(found[0][0], ways, tuple(streams), waits_for, "stream", lambda: ended(spans)))

    def _list_queues(self, transfer: QueuedTransfer) -> Sequence[deque[QueuedTransfer]]:
        tracks = dict.fromkeys(stream.track for stream in transfer.streams)
        return [self._queues.setdefault(track, deque()) for track in tracks]

    def _serve(self, transfers: Sequence[QueuedTransfer]) -> None:
        """Begin those that are the first in all their queues, each once what it waits for is done."""
        for transfer in transfers:
            if all(queue[0] is transfer for queue in self._list_queues(transfer)):
                self._plan_start(transfer)

    def _plan_start(self, transfer: QueuedTransfer) -> None:
        recorder, (own, *others) = self.recorder, transfer.streams
        last = [*transfer.ways][-1]
        asked = recorder.spans[last]
        start = start_on(own, asked.start, asked.cause, (*others, *transfer.waits_for), transfer.why_own)
        for span in transfer.ways:
            is_late: Why = "member" if start.time > recorder.spans[span].ready else "dependency"
            recorder.starts_at(span, start.time, start.cause, start.why if span == last else is_late)
        if start.time > self.events.now:
            self.events.at(start.time, lambda: self._begin(transfer))
        else:
            self._begin(transfer)

    def _begin(self, transfer: QueuedTransfer) -> None:
        transfer.begun()
        self.sharing.carry(transfer.route, transfer.ways, lambda: self._end(transfer))

    def _end(self, transfer: QueuedTransfer) -> None:
        for stream, span in zip(transfer.streams, transfer.ways, strict=True):
            stream.free_at, stream.last_span = self.events.now, span
        queues = self._list_queues(transfer)
        for queue in queues:
            queue.popleft()
        waiting = list(dict.fromkeys(queue[0] for queue in queues if queue))
        transfer.ended()  # which may ask for others, and serves these
        self._serve(waiting)
