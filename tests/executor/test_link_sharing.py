"""Bytes over links that several share: against a simulation in small steps of time, and what must hold of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simplace.executor.events import Events
from simplace.executor.fair_shares import Demand, share_fairly
from simplace.executor.link_routes import Route
from simplace.executor.link_sharing import LinkSharing
from simplace.executor.trace import PassedLink, SharedCopy, Span

LINKS = 2
NANO = 1e9  # a rate of so many bytes/s is a byte in a nanosecond


@dataclass
class Recorder:
    """Stand in for the recorder of a trace."""

    spans: list[Span] = field(default_factory=list)
    shared: dict[int, SharedCopy] = field(default_factory=dict)

    def ends_at(self, span: int, end: int) -> None:
        self.spans[span] = self.spans[span]._replace(end=end)


@dataclass(frozen=True)
class World:
    """Record of copies as (start, latency, nanoseconds of its bytes alone, rate in bytes/ns, loads), and of links."""

    copies: tuple[tuple[int, int, int, float, dict[int, float]], ...]
    capacities: tuple[float, ...]  # of each way, in bytes/ns

    @property
    def links(self) -> list[PassedLink]:
        return [PassedLink(f"link {i}", self.capacities[2 * i] * NANO, ()) for i in range(LINKS)]


@st.composite
def worlds(draw: st.DrawFn) -> World:
    one = [draw(st.sampled_from((0.5, 1.0, 3.0))) for _ in range(LINKS)]
    copy = st.tuples(
        st.integers(0, 60), st.integers(0, 20), st.integers(1, 80), st.sampled_from((0.5, 1.0, 2.0)),
        st.dictionaries(st.integers(0, 2 * LINKS - 1), st.sampled_from((1.0, 1.0, 0.5, 2.0)), max_size=2),
    )  # fmt: skip
    copies = draw(st.lists(copy, min_size=1, max_size=6))
    return World(tuple(copies), tuple(rate for rate in one for _ in range(2)))


def simulated(world: World) -> Recorder:
    events, recorder = Events(), Recorder()
    sharing = LinkSharing(world.links, events, recorder)  # type: ignore[arg-type]

    def start(number: int) -> None:
        _, latency, moving, rate, loads = world.copies[number]
        sharing.carry(Route(latency, moving, rate * NANO, loads), {number: tuple(loads)}, lambda: None)

    for number, (begins, *_) in enumerate(world.copies):
        recorder.spans.append(Span(number, number, "copy", begins, begins, begins, -1, "start"))
        events.at(begins, lambda number=number: start(number))  # type: ignore[misc]
    events.run()
    return recorder


def stepped(world: World) -> list[float]:
    """Return the end of each copy, found by moving bytes in steps of a fraction of a nanosecond."""
    step, now = 0.02, 0.0
    left = [moving * rate for _, _, moving, rate, _ in world.copies]
    ends = [0.0] * len(left)
    while any(left):
        moves = [i for i, (begins, latency, *_) in enumerate(world.copies) if left[i] and now >= begins + latency]
        fair = share_fairly([Demand(*world.copies[i][3:]) for i in moves], world.capacities)
        now += step
        for i, one in zip(moves, fair, strict=True):
            left[i] = max(0.0, left[i] - step * one.rate)
            ends[i] = now
    return ends


@settings(deadline=None, max_examples=40)
@given(world=worlds())
def test_copies_end_as_in_small_steps_of_time(world: World) -> None:
    ends = [span.end for span in simulated(world).spans]
    assert ends == pytest.approx(stepped(world), abs=2.0)  # rounded to nanoseconds, and each step a bit late


@settings(deadline=None)
@given(world=worlds())
def test_bytes_take_their_time(world: World) -> None:
    recorder = simulated(world)
    for number, (begins, latency, moving, _, loads) in enumerate(world.copies):
        took, ways = recorder.spans[number].end - begins, tuple(loads)
        assert took >= latency + moving
        if not ways:
            assert took == latency + moving
            assert number not in recorder.shared
        else:
            shared = recorder.shared[number]
            assert (shared.alone, shared.moves_at, shared.ways) == (latency + moving, begins + latency, ways)
            assert (shared.slowed_by < 0) == (took <= latency + moving)
    for way, capacity in enumerate(world.capacities):
        passing = [i for i, copy in enumerate(world.copies) if way in copy[4]]
        if passing:
            first = min(recorder.shared[i].moves_at for i in passing)
            last = max(recorder.spans[i].end for i in passing)
            size = sum(world.copies[i][2] * world.copies[i][3] * world.copies[i][4][way] for i in passing)
            assert last - first >= ceil(size / capacity) - 1 - len(passing)


@given(latency=st.integers(0, 10**6), moving=st.integers(1, 10**9), begins=st.integers(0, 10**9))
def test_a_lone_copy_takes_as_long_as_without_links(latency: int, moving: int, begins: int) -> None:
    recorder = simulated(World(((begins, latency, moving, 0.3, {0: 1, 3: 1}),), (0.3,) * 4))
    assert recorder.spans[0].end == begins + latency + moving
    assert recorder.shared[0].slowed_by == -1


def test_a_copy_that_comes_later_takes_half() -> None:
    """Copies of 100 bytes at a byte a nanosecond, the second 40 later: both move 60 in 120, and the second 40 alone."""
    recorder = simulated(World(((0, 0, 100, 1.0, {0: 1}), (40, 0, 100, 1.0, {0: 1})), (1.0,) * 4))
    assert [span.end for span in recorder.spans] == [160, 200]
    assert recorder.shared == {
        0: SharedCopy(100, 0, (0,), 0, (1,)),
        1: SharedCopy(100, 40, (0,), 0, (0,)),
    }


def test_a_link_that_is_slower_than_a_copy_slows_it_down_alone() -> None:
    recorder = simulated(World(((0, 5, 100, 1.0, {2: 1}),), (1.0, 1.0, 0.5, 0.5)))
    assert recorder.spans[0].end == 205
    assert recorder.shared == {0: SharedCopy(105, 5, (2,), 1, ())}
