"""The Chrome trace: a tid a track, arrows in pairs, memory counters."""

import json

from simplace.exports.chrome_trace import chrome_trace
from simplace.exports.schedule_report import report_schedule
from tests.executor.worlds import Costs, run

GRAPH = """
    x = Placeholder() @c {dtype=float}
    A = Neg(x) @g0
    B = Neg(A) @g1
    C = AddV2(A, B) @c
"""


def events(kind: str) -> list[dict]:  # type: ignore[type-arg]
    trace = chrome_trace(run(GRAPH, Costs(launch=0.5), inter_op=2))
    return [event for event in trace["traceEvents"] if event["ph"] == kind]


def test_each_track_is_one_thread_with_a_name() -> None:
    names = {event["tid"]: event["args"]["name"] for event in events("M") if event["name"] == "thread_name"}
    assert len(set(names.values())) == len(names)
    assert {event["tid"] for event in events("X")} <= set(names)


def test_arrows_come_in_pairs_between_tracks() -> None:
    starts, ends = events("s"), events("f")
    assert [one["id"] for one in starts] == [one["id"] for one in ends]
    assert all(one["ts"] <= other["ts"] and one["tid"] != other["tid"] for one, other in zip(starts, ends, strict=True))
    assert starts


def test_memory_is_a_counter_a_device() -> None:
    assert {event["name"] for event in events("C")} >= {"memory of GPU:0", "memory of GPU:1"}


def test_it_is_json() -> None:
    done = run(GRAPH)
    assert json.loads(json.dumps(chrome_trace(done)))["otherData"]["executor"] == "tensorflow"
    assert json.loads(json.dumps(report_schedule(done, "busy")))["schema"] == "simplace/schedule/1"
