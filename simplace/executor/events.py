"""The clock: which event is next, and the order of events at one time.

Events at one time run in the order in which they were scheduled.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable


class Events:
    """Keep events by (time in nanoseconds, serial number)."""

    def __init__(self) -> None:
        self.now = 0
        self.count = 0
        self._heap: list[tuple[int, int, Callable[[], None]]] = []

    def at(self, time: int, action: Callable[[], None]) -> None:
        """Run `action` at `time`, which must not be past."""
        assert time >= self.now, "nothing happens in the past"
        self.count += 1
        heapq.heappush(self._heap, (time, self.count, action))

    def run(self) -> None:
        """Run events until none is left."""
        while self._heap:
            self.now, _, action = heapq.heappop(self._heap)
            action()
