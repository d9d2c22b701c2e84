"""The Chrome trace against the documented format: what Perfetto needs to draw all of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from simplace.analysis.schedule import Schedule, schedule_placement
from simplace.exports.chrome_trace import chrome_trace
from tests.executor.worlds import placed

COPIES = """
x = Placeholder() @c {dtype=float}
a = MatMul(x, x) @g0
b = MatMul(a, a) @g1
c = MatMul(x, x) @c
d = MatMul(x, x) @c
e = MatMul(c, b) @c
f = MatMul(d, e) @c
"""
REQUIRED = {
    "X": {"name", "cat", "ts", "dur", "pid", "tid"}, "M": {"name", "pid", "tid", "args"},
    "s": {"name", "cat", "id", "ts", "pid", "tid"}, "f": {"name", "cat", "id", "ts", "pid", "tid", "bp"},
    "C": {"name", "ts", "pid", "args"},
}  # fmt: skip


def run(executor: str) -> Schedule:
    return schedule_placement(placed(COPIES), inter_op=2, intra_op=2, executor=executor, steps=2)


@pytest.fixture(params=["tensorflow", "textbook"])
def events(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    return json.loads(json.dumps(chrome_trace(run(request.param))))["traceEvents"]


def of(events: list[dict[str, Any]], phase: str) -> list[dict[str, Any]]:
    return [event for event in events if event["ph"] == phase]


def test_each_event_has_what_its_phase_requires(events: list[dict[str, Any]]) -> None:
    for event in events:
        assert set(event) >= REQUIRED[event["ph"]]
        assert event.get("ts", 0) >= 0
        assert event.get("dur", 1) > 0


def test_each_thread_and_process_is_named_once(events: list[dict[str, Any]]) -> None:
    threads = [(e["pid"], e["tid"]) for e in of(events, "M") if e["name"] == "thread_name"]
    processes = [e["pid"] for e in of(events, "M") if e["name"] == "process_name"]
    assert len(threads) == len(set(threads))
    assert len(processes) == len(set(processes))
    assert {(e["pid"], e["tid"]) for e in of(events, "X")} <= set(threads)
    assert {e["pid"] for e in events} <= set(processes)


def test_slices_of_a_thread_do_not_overlap(events: list[dict[str, Any]]) -> None:
    ends: dict[tuple[int, int], float] = {}
    for event in of(events, "X"):
        place = (event["pid"], event["tid"])
        assert event["ts"] >= ends.get(place, 0.0) - 1e-6
        ends[place] = event["ts"] + event["dur"]


def test_arrows_are_pairs_that_lead_from_a_slice_to_a_later_one(events: list[dict[str, Any]]) -> None:
    starts, ends = ({event["id"]: event for event in of(events, phase)} for phase in "sf")
    assert starts
    assert starts.keys() == ends.keys()
    assert len(starts) == len(of(events, "s"))
    for number, start in starts.items():
        assert start["ts"] <= ends[number]["ts"]
        for arrow in (start, ends[number]):
            around = [
                event
                for event in of(events, "X")
                if (event["pid"], event["tid"]) == (arrow["pid"], arrow["tid"])
                and event["ts"] <= arrow["ts"] < event["ts"] + event["dur"]
            ]
            assert len(around) == 1


def test_counters_go_forward_in_time_and_never_below_nothing(events: list[dict[str, Any]]) -> None:
    last: dict[str, float] = {}
    counters = of(events, "C")
    assert counters
    for event in counters:
        assert event["ts"] >= last.get(event["name"], 0.0)
        assert all(value >= 0 for value in event["args"].values())
        last[event["name"]] = event["ts"]


def test_trace_holds_every_span_that_takes_time() -> None:
    done = run("tensorflow")
    slices = of(chrome_trace(done)["traceEvents"], "X")
    assert len(slices) == sum(span.duration > 0 for span in done.trace.spans)
    assert sum(event["dur"] for event in slices) == pytest.approx(sum(s.duration for s in done.trace.spans) / 1000)
