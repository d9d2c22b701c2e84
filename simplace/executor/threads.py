"""Thread pools that keep a queue a worker and steal from each other.

Mirrors Eigen's NonBlockingThreadPool: what a worker schedules goes to the front of its own queue, what anybody else
schedules to the back of a random one; a worker takes from its own front, then steals from the back of others,
starting at a random one. A pool of one thread never steals. Randomness comes from a seed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from random import Random

from simplace.executor.events import Events
from simplace.executor.propagation import Activation


class Worker:
    """Hold one thread: `queue` is its own in the pool, `inline` what it will run before it looks there again."""

    __slots__ = ("inline", "lane", "last_span", "last_time", "pool", "queue")

    def __init__(self, pool: Pool, lane: int) -> None:
        self.pool = pool
        self.lane = lane
        self.queue: deque[Activation] = deque()
        self.inline: deque[Activation] = deque()
        self.last_span = -1
        self.last_time = -1


class Pool:
    """Hold the workers of one pool. `go` is called with a worker that may have something to do."""

    def __init__(
        self, events: Events, random: Random, lanes: list[int], hand_off: int, go: Callable[[Worker], None]
    ) -> None:
        self._events = events
        self._random = random
        self._hand_off = hand_off
        self._go = go
        self.workers = [Worker(self, lane) for lane in lanes]
        self._idle = list(self.workers)

    def schedule(self, activation: Activation, by: Worker | None) -> None:
        """Queue an execution and wake the first idle worker, if there is one."""
        if by is not None and by.pool is self:
            by.queue.appendleft(activation)
        else:
            self._pick().queue.append(activation)
        if self._idle:
            worker = self._idle.pop(0)
            self._events.at(self._events.now + self._hand_off, lambda: self._go(worker))

    def take(self, worker: Worker) -> Activation | None:
        """Return what a worker runs next; None sends it to rest."""
        if worker.queue:
            return worker.queue.popleft()
        if len(self.workers) > 1:
            start = self._random.randrange(len(self.workers))
            for victim in self.workers[start:] + self.workers[:start]:
                if victim.queue:
                    return victim.queue.pop()
        self._idle.append(worker)
        self._idle.sort(key=self.workers.index)
        return None

    def _pick(self) -> Worker:
        return self.workers[self._random.randrange(len(self.workers))] if len(self.workers) > 1 else self.workers[0]


class Helpers:
    """Count the free threads of a process's intra-op pool, by lane."""

    def __init__(self, lanes: list[int]) -> None:
        self._free = list(lanes)

    def take(self, wanted: int) -> list[int]:
        """Take up to `wanted` free threads, lowest lanes first."""
        taken, self._free = self._free[:wanted], self._free[wanted:]
        return taken

    def give_back(self, lane: int) -> None:
        """Return a thread."""
        self._free.append(lane)
        self._free.sort()
