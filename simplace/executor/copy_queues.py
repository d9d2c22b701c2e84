"""The streams and links of copies that share links with others: how long a copy takes is known when it has ended.

As in `gpu_streams`, each serves one copy at a time, in the order of asking, and a copy waits for what the compute
streams of its GPUs had enqueued when it was asked for. Those know their times at once; a copy begins when the one
before it has ended, and ends when all its bytes have passed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

from simplace.executor.copy_routes import Routes
from simplace.executor.events import Events
from simplace.executor.gpu_streams import Stream, start_on
from simplace.executor.link_sharing import LinkSharing
from simplace.executor.trace_recorder import TraceRecorder


@dataclass(frozen=True, slots=True)
class QueuedCopy:
    """Record of a copy that was asked for, by number, with the span that was added for it, ready from its start on.

    `begun` and `ended` are called when it begins and when it has ended.
    """

    number: int
    span: int
    waits_for: tuple[Stream, ...]
    begun: Callable[[], None]
    ended: Callable[[], None]


class CopyQueues:
    """Run copies, one at a time on each stream or link."""

    def __init__(self, routes: Routes, events: Events, recorder: TraceRecorder) -> None:
        self._sharing = LinkSharing(routes, events, recorder)
        self._events = events
        self._recorder = recorder
        self._queues: dict[int, deque[QueuedCopy]] = {}  # by track; the first one runs

    def enqueue(self, stream: Stream, copy: QueuedCopy) -> None:
        """Add a copy to the queue of a stream; the streams that it waits for are taken as they are now."""
        queue = self._queues.setdefault(stream.track, deque())
        queue.append(replace(copy, waits_for=tuple(replace(each) for each in copy.waits_for)))
        if len(queue) == 1:
            self._serve(stream)

    def _serve(self, stream: Stream) -> None:
        """Begin the first copy of a queue once what it waits for is done."""
        copy = self._queues[stream.track][0]
        asked = self._recorder.spans[copy.span]
        start = start_on(stream, asked.ready, asked.cause, copy.waits_for, "link")
        self._recorder.starts_at(copy.span, start.time, start.cause, start.why)
        if start.time > self._events.now:
            self._events.at(start.time, lambda: self._begin(stream, copy))
        else:
            self._begin(stream, copy)

    def _begin(self, stream: Stream, copy: QueuedCopy) -> None:
        copy.begun()
        self._sharing.carry(copy.number, copy.span, lambda: self._end(stream, copy))

    def _end(self, stream: Stream, copy: QueuedCopy) -> None:
        now, queue = self._events.now, self._queues[stream.track]
        stream.free_at, stream.last_span = now, copy.span
        queue.popleft()
        copy.ended()
        if queue:
            self._serve(stream)
