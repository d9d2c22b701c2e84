"""The cores of a process: running threads share them fairly, none runs faster than a core."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from math import ceil

from simplace.executor.events import Events


class Cores:
    """Advance running jobs at the rate min(1, cores / jobs).

    All jobs advance alike, so one clock of work done serves them all: a job ends when that clock reaches its mark.
    """

    def __init__(self, events: Events, count: int) -> None:
        self._events = events
        self._count = count
        self._clock = 0.0  # nanoseconds of work each job has had
        self._seen = 0  # when the clock was last set
        self._jobs: list[tuple[float, int, Callable[[], None]]] = []
        self._serial = 0
        self._alarm = 0

    @property
    def is_busy(self) -> bool:
        """Return whether any job runs."""
        return bool(self._jobs)

    def run(self, work: int, then: Callable[[], None]) -> None:
        """Start `work` nanoseconds on a core; call `then` at the end."""
        self._advance()
        self._serial += 1
        heapq.heappush(self._jobs, (self._clock + work, self._serial, then))
        self._set_alarm()

    def _rate(self) -> float:
        return min(1.0, self._count / len(self._jobs)) if self._jobs else 1.0

    def _advance(self) -> None:
        self._clock += (self._events.now - self._seen) * self._rate()
        self._seen = self._events.now

    def _set_alarm(self) -> None:
        """Ask to be woken at the next end; an alarm set earlier is void."""
        self._alarm += 1
        if not self._jobs:
            return
        alarm = self._alarm
        left = max(0.0, self._jobs[0][0] - self._clock)
        wait = ceil(round(left / self._rate(), 3))
        self._events.at(self._events.now + wait, lambda: self._ring(alarm))

    def _ring(self, alarm: int) -> None:
        if alarm != self._alarm:
            return
        self._advance()
        mark, _, then = heapq.heappop(self._jobs)
        self._clock = max(self._clock, mark)
        self._set_alarm()
        then()
