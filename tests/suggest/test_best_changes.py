"""Which of the changes that were tried are suggested."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from simplace.analysis.step_memory import StepMemory
from simplace.suggestions.best_changes import choose_trials
from simplace.suggestions.changes import NewScope, ThreadSettings, join_changes
from simplace.suggestions.estimated_step import Step
from simplace.suggestions.thread_changes import (
    WAKE_ERROR_NS,
    WAKE_NS,
    time_unsure_waking,
    time_waking,
    works_on_threads,
)
from simplace.suggestions.trial import Trial
from tests.executor.worlds import Costs, run


def trial(line: int, gain: float, error: float) -> SimpleNamespace:
    change = NewScope(edits=(), at=f"m.py:{line}", device="/GPU:0", variables=())
    before = SimpleNamespace(memory=SimpleNamespace(fits=True))
    return SimpleNamespace(
        change=change, gain=gain, gain_error=error, makes_fit=False, missing=0, before=before, places=frozenset({line})
    )


def test_a_gain_within_its_error_is_none() -> None:
    tried = [trial(1, 0.3, 0.1), trial(2, 0.05, 0.31), trial(3, 0.04, 0.0), trial(4, 0.1, 0.1), trial(5, 0.1, 0.09)]
    assert [one.change.at for one in choose_trials(tried)] == ["m.py:1", "m.py:5"]


def test_several_changes_have_to_gain_over_some_of_them() -> None:
    def change(line: int) -> NewScope:
        return NewScope(edits=(), at=f"m.py:{line}", device="/GPU:0", variables=())

    first = Trial(change(1), "held", step(10.0, 1), step(8.0, 1))
    more, little = (
        replace(first, change=join_changes(first.change, change(line)), after=step(milliseconds, 1))
        for line, milliseconds in ((2, 6.0), (3, 7.7))
    )
    assert [round(one.gain, 2) for one in (first, more, little)] == [0.2, 0.4, 0.23]
    assert [round(one.over(first).gain, 2) for one in (more, little)] == [0.25, 0.04]
    assert [*choose_trials([first, more])] == [more, first]
    assert [*choose_trials([first, little])] == [first]


def test_a_part_that_would_not_be_suggested_need_not_be_beaten() -> None:
    first = Trial(NewScope(edits=(), at="m.py:1", device="/GPU:0", variables=()), "held", step(10.0, 1), step(9.6, 1))
    more = replace(first, change=join_changes(first.change, replace(first.change, at="m.py:2")), after=step(9.3, 1))
    assert (round(more.gain, 2), round(more.over(first).gain, 2)) == (0.07, 0.03)
    assert [*choose_trials([first, more])] == [more]


TWO_OPS = """\
    x = Placeholder() @c {dtype=float}
    a = Tanh(x) @c
    b = Tanh(x) @c
    end = AddN(a, b) @c {N=2}
"""


def step(milliseconds: float, threads: int) -> Step:
    """Simulate a step of two ops that take half of the time each, on a CPU with so many inter-op threads."""
    times = {"a": milliseconds / 2, "b": milliseconds / 2, "end": 0.0}
    schedule = run(TWO_OPS, Costs(times), inter_op=threads, cores=2)
    return Step(schedule, StepMemory.of(schedule, ()), 1)


@pytest.mark.parametrize(
    ("milliseconds", "gain", "error", "is_suggested"),
    [(5.0, 0.465, 0.015, True), (1.2, 0.354, 0.0625, True), (0.45, 0.111, 0.167, False)],
)
def test_threads_of_a_short_step_take_long_to_wake(milliseconds: float, gain: float, error: float, is_suggested: bool):
    before, after = step(milliseconds, 1), step(milliseconds, 2)
    after = replace(after, woken=time_waking(before.schedule, after.schedule))
    tried = Trial(ThreadSettings(edits=(), at="m.py:1", inter_op=0, intra_op=1), "held", before, after)
    assert (tried.gain, tried.gain_error) == (pytest.approx(gain, abs=1e-3), pytest.approx(error, abs=1e-3))
    assert bool([*choose_trials([tried])]) == is_suggested
    same = replace(tried, change=NewScope(edits=(), at="m.py:1", device="/GPU:0", variables=()))
    assert same.gain_error == 0.0


def test_shards_of_an_op_are_forked_with_what_that_takes() -> None:
    schedule = run("x = Placeholder() @c {dtype=float}\na = Tanh(x) @c", Costs(shards={"a": 2}), intra_op=2, cores=2)
    assert {schedule.trace.tracks[span.track].kind for span in schedule.trace.spans} == {"worker", "intra"}
    assert not works_on_threads(schedule)


def test_one_thread_in_place_of_several_waits_for_none() -> None:
    before, after = step(1.0, 2).schedule, step(1.0, 1).schedule
    assert [works_on_threads(one) for one in (before, after)] == [True, False]
    assert (time_waking(before, after), time_unsure_waking(before, after)) == (0, WAKE_NS)
    assert (time_waking(before, before), time_unsure_waking(before, before)) == (0, WAKE_ERROR_NS)
    assert (time_waking(after, after), time_unsure_waking(after, after)) == (0, WAKE_ERROR_NS)
