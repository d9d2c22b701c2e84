"""Which runs of a traced step were dispatched, on made-up traces of two threads."""

from __future__ import annotations

from simplace.measure.measurement import NodeRun
from simplace.measure.observed_dispatch import observe_dispatches


def run(name: str, scheduled: int, start: int, end: int) -> NodeRun:
    return NodeRun(name, start + 100, end - 100, start, end, scheduled=scheduled)


def test_what_is_scheduled_before_the_end_of_another_goes_on_after_it_and_else_was_dispatched() -> None:
    runs = [
        run("first", 0, 1000, 2000),
        run("cheap", 1960, 2500, 3000),
        run("behind", 2960, 3500, 4000),
        run("elsewhere", 2300, 9000, 9500),
    ]
    inputs = {name: ["first"] for name in ("cheap", "behind", "elsewhere")}
    assert observe_dispatches(runs, inputs) == {
        "first": [True], "cheap": [None], "behind": [False], "elsewhere": [True],
    }  # fmt: skip


def test_each_run_of_a_loop_has_its_own_way() -> None:
    runs = [
        run("turn", 0, 1000, 2000),
        run("other", 1960, 2500, 3000),
        run("op", 2960, 3500, 4000),
        run("turn", 3960, 4500, 5000),
        run("other", 4960, 5500, 6000),
        run("op", 5300, 8500, 9000),
    ]
    assert observe_dispatches(runs, {"op": ["turn"]})["op"] == [False, True]


def test_one_run_only_goes_on_after_an_end() -> None:
    runs = [run("a", 0, 1000, 2000), run("b", 1960, 2500, 3000), run("c", 1940, 9000, 9500)]
    assert observe_dispatches(runs, {"b": ["a"], "c": ["a"]})["c"] == [True]


def test_what_is_scheduled_during_another_kernel_was_dispatched_before_that_thread_took_it() -> None:
    runs = [run("a", 0, 1000, 2000), run("long", 1500, 3000, 6000), run("b", 2300, 6500, 7000)]
    assert observe_dispatches(runs, {"b": ["a"]})["b"] == [True]
