"""Thread pools that have a queue per worker and steal from each other.

Mirrors Eigen's NonBlockingThreadPool: what a worker schedules goes to the front of its own queue, what anybody else
schedules to the back of a random one; a worker takes from its own front, then steals from the back of others,
starting at a random one. A pool of one thread never steals. Of the threads without work at most one spins, as long
as few are active; the others park, and the one that parked last is woken first (EventCount.h). Randomness comes from a
seed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from random import Random

from simplace.costs.cost_model import interpolate_points
from simplace.executor.events import Events
from simplace.executor.propagator_state import Activation

_PARKED = -1
_ACTIVE_WITHOUT_SPINNER = 4  # kMinActiveThreadsToStartSpinning: with more active threads a thread parks at once


class Worker:
    """Record of one thread: `queue` is its own in the pool, `inline` what it will run before it looks there again.

    `owed` is bookkeeping in nanoseconds that it has to do first. A thread without work spins until `spins_until`;
    it has had none since `idle_since`, None for a thread that had none before. `was_dead`: so was its last node.
    """

    __slots__ = (
        "idle_since",
        "inline",
        "last_span",
        "last_time",
        "owed",
        "pool",
        "queue",
        "spins_until",
        "track",
        "was_dead",
    )

    def __init__(self, pool: Pool, track: int) -> None:
        self.pool = pool
        self.track = track
        self.queue: deque[Activation] = deque()
        self.inline: deque[Activation] = deque()
        self.last_span = -1
        self.last_time = -1
        self.owed = 0
        self.spins_until = _PARKED
        self.idle_since: int | None = None
        self.was_dead = False

    @property
    def parked_at(self) -> int:
        """Return when this idle thread parked, below 0 where it never had work: the first of a pool parks last."""
        return -1 - self.track if self.idle_since is None else max(self.idle_since, self.spins_until)


@dataclass(frozen=True, slots=True)
class PoolTimes:
    """Record of a pool's fixed times in nanoseconds, under the names of `Overheads`; `spin_spread` is a share.

    `parked` holds (without work for so long, hand-off, wake), by the first; () where both are always the same.
    """

    hand_off: int = 0
    dispatch: int = 0
    wake: int = 0
    queue: int = 0
    spin: int = 0
    spin_spread: float = 0.0
    spin_hand_off: int = 0
    parked: tuple[tuple[int, int, int], ...] = ()

    def waking(self, idle: int | None) -> tuple[int, int]:
        """Return hand-off and wake for a thread that has parked; None stands for one that never had work."""
        if not self.parked:
            return self.hand_off, self.wake
        if idle is None:
            return self.parked[-1][1:]
        hand_offs, wakes = ([(point[0], point[i]) for point in self.parked] for i in (1, 2))
        return round(interpolate_points(hand_offs, idle)), round(interpolate_points(wakes, idle))


class Pool:
    """Record of the workers of one pool. `go` is called with a worker that may have something to do.

    One thread without work spins for a while before it parks, so that it finds soon what is dispatched; a parked one
    has to be woken, which costs the thread that dispatches as well.
    """

    def __init__(
        self, events: Events, random: Random, tracks: list[int], times: PoolTimes, go: Callable[[Worker], None]
    ) -> None:
        self._events = events
        self._random = random
        self._times = times
        self._go = go
        self.workers = [Worker(self, track) for track in tracks]
        self._idle = list(self.workers)

    def schedule(self, activation: Activation, by: Worker | None) -> None:
        """Queue an execution; a thread that spins finds it, else the one that parked last is woken."""
        if by is not None and by.pool is self:
            by.queue.appendleft(activation)
        else:
            self._pick().queue.append(activation)
        if by is not None:
            by.owed += self._times.dispatch
        if not self._idle:
            return
        at = self._events.now + (by.owed if by is not None else 0)
        worker = next((one for one in self._idle if one.spins_until > at), None)
        wait = self._times.spin_hand_off
        if worker is None:
            worker = max(reversed(self._idle), key=_parked_at)
            wait, wake = self._times.waking(None if worker.idle_since is None else at - worker.idle_since)
            if by is not None:
                by.owed += wake
        self._idle.remove(worker)
        woken = worker
        self._events.at(at + wait, lambda: self._go(woken))

    def take(self, worker: Worker) -> Activation | None:
        """Return what a worker runs next; None sends it to rest."""
        if worker.queue:
            worker.owed += self._times.queue
            return worker.queue.popleft()
        if len(self.workers) > 1:
            start = self._random.randrange(len(self.workers))
            for victim in self.workers[start:] + self.workers[:start]:
                if victim.queue:
                    return victim.queue.pop()
        self._rest(worker)
        return None

    def _rest(self, worker: Worker) -> None:
        now = self._events.now
        active = len(self.workers) - len(self._idle) - 1
        is_first = active <= _ACTIVE_WITHOUT_SPINNER and all(one.spins_until <= now for one in self._idle)
        worker.spins_until = now + self._draw_spin() if is_first else _PARKED
        worker.idle_since = now
        self._idle.append(worker)

    def _draw_spin(self) -> int:
        """Return how long a thread spins this time: a fixed number of rounds, as fast as its core just is."""
        spin, spread = self._times.spin, self._times.spin_spread
        return max(0, round(spin * self._random.gauss(1.0, spread))) if spread else spin

    def _pick(self) -> Worker:
        return self.workers[self._random.randrange(len(self.workers))] if len(self.workers) > 1 else self.workers[0]


_parked_at = attrgetter("parked_at")


class IntraOpWorkers:
    """Count the free threads of a process's intra-op pool, by track."""

    def __init__(self, tracks: list[int]) -> None:
        self._free = list(tracks)

    def take(self, wanted: int) -> list[int]:
        """Take up to `wanted` free threads, lowest tracks first."""
        taken, self._free = self._free[:wanted], self._free[wanted:]
        return taken

    def give_back(self, track: int) -> None:
        """Return a thread."""
        self._free.append(track)
        self._free.sort()
