"""Threads without work: one spins for a while, the others park and have to be woken."""

from random import Random
from statistics import mean, stdev

import pytest

from simplace.executor.events import Events
from simplace.executor.propagator_state import Activation, Frame, Iteration
from simplace.executor.thread_pool import Pool, PoolTimes, Worker

TIMES = PoolTimes(hand_off=30, dispatch=2, wake=20, queue=1, spin=25, spin_hand_off=3)


def activation(node: int) -> Activation:
    return Activation(node, Iteration(Frame("", None, 0, 1), 0), False, [])


class World:
    """Record of a pool whose workers note when they look for work, and take what they find."""

    def __init__(self, size: int, times: PoolTimes = TIMES) -> None:
        self.events = Events()
        self.found: list[tuple[int, int, int]] = []  # (time, track, node)
        self.pool = Pool(self.events, Random(0), list(range(size)), times, self.go)

    def go(self, worker: Worker) -> None:
        while (one := self.pool.take(worker)) is not None:
            self.found.append((self.events.now, worker.track, one.node))

    def at(self, time: int, node: int, by: int | None = None) -> None:
        worker = None if by is None else self.pool.workers[by]
        self.events.at(time, lambda: self.pool.schedule(activation(node), worker))


def test_parked_thread_is_woken_and_spinning_one_finds_work_soon() -> None:
    world = World(1)
    for time in (0, 40, 100):  # it looks from 30 to 55, finds the second at 43, and has parked at 68
        world.at(time, time)
    world.events.run()
    assert world.found == [(30, 0, 0), (43, 0, 40), (130, 0, 100)]


def test_thread_that_dispatches_pays_for_it_and_more_for_waking() -> None:
    world = World(2)
    owner = world.pool.workers[0]
    world.pool._idle.remove(owner)  # it runs an op
    paid: list[int] = []
    world.at(0, 1, by=0)
    world.events.at(39, lambda: paid.append(owner.owed) or setattr(owner, "owed", 0))
    world.at(40, 2, by=0)  # the other thread spins from 32 to 57
    world.events.run()
    assert (paid, owner.owed) == ([2 + 20], 2)
    assert world.found == [(32, 1, 1), (45, 1, 2)]


def test_one_thread_spins_at_most() -> None:
    world = World(3)
    for node in (1, 2):
        world.at(0, node)
    world.events.run()
    assert sum(worker.spins_until > 0 for worker in world.pool.workers) == 1


def test_how_long_a_thread_spins_varies() -> None:
    world = World(1, PoolTimes(hand_off=30, spin=1000, spin_spread=0.2, spin_hand_off=3))
    spun = []
    for time in range(0, 2_000_000, 10_000):  # it has parked again each time
        world.at(time, time)
        world.events.at(time + 100, lambda: spun.append(world.pool.workers[0].spins_until - world.events.now + 70))
    world.events.run()
    assert mean(spun) == pytest.approx(1000, rel=0.05)
    assert stdev(spun) == pytest.approx(200, rel=0.2)


def test_thread_that_has_been_idle_for_long_takes_longer_to_wake() -> None:
    world = World(1, PoolTimes(spin=5, parked=((100, 30, 20), (300, 50, 40))))
    for time in (0, 150, 400):  # without work never before, for 100, and for 220
        world.at(time, time)
    world.events.run()
    assert world.found == [(50, 0, 0), (180, 0, 150), (442, 0, 400)]
    assert world.pool._times.waking(200) == (40, 30)
