"""What is said of links that several GPUs share: in summaries, tables, tooltips, traces, JSON and on the page."""

from __future__ import annotations

import json
from math import inf

import pytest

from simplace.analysis.link_use import LinkUse
from simplace.devices.device_set import local_devices
from simplace.executor.trace import PassedLink
from simplace.exports.chrome_trace import chrome_trace
from simplace.exports.schedule_report import report_schedule
from simplace.report.schedule_data import schedule_data
from simplace.views.figures.timeline import draw_timeline
from simplace.views.text.schedule_tables import write_summary
from simplace.views.text.sharing_phrases import describe_link, describe_shared_hardware
from simplace.views.text.verdict import write_verdict
from tests.executor.linked_worlds import BOTH_FROM_HOST, GPUS, Wires, run, simulated, switch

SHARED = run(BOTH_FROM_HOST, switch("switch", 0, 1), switch("port", 0, 1, 2, 3, bandwidth=4_000_000))
SAID = "5 ms ± 25% on its own link: shares switch with copies of GPU:1"


def test_the_summary_says_what_each_link_costs() -> None:
    lines = [
        "switch (1 MB/s each way, shared by GPU:0, GPU:1): busy 80%; its 2 copies took 1.8 times as long as without it",
        "port (4 MB/s each way, shared by GPU:0 … GPU:3): busy 80%; its 2 copies took 1.8 times as long as without it",
    ]
    assert describe_shared_hardware(SHARED) == lines
    assert all(f"\n\n{line}\n\n" in write_summary(SHARED) for line in lines)
    assert not describe_shared_hardware(run(BOTH_FROM_HOST))


@pytest.mark.parametrize(
    ("use", "said"),
    [
        ((0, 0, 0, 0.0, 0, 0), "nothing passes it"),
        ((1, 0, 5, 0.5, 8, 8), "busy 50%; its copy took as long as without it"),
        ((1, 0, 5, 0.5, 12, 8), "busy 50%; its copy took 1.5 times as long as without it"),
        ((3, 0, 5, 0.5, 801, 800), "busy 50%; its 3 copies took as long as without it"),
        ((0, 2, 5, 0.5, 8, 8), "busy 50%; its 2 members of collectives took as long as without it"),
        ((1, 1, 5, 0.5, 8, 8), "busy 50%; its copy and member of a collective took as long as without it"),
    ],
)
def test_one_line_is_enough(use: tuple[int, int, int, float, int, int], said: str) -> None:
    assert describe_link(LinkUse(PassedLink("card", inf, ("worker/0",)), *use)) == f"card (shared by worker/0): {said}"


def test_a_copy_says_what_slowed_it_down() -> None:
    assert any(SAID in bar.tooltip for bar in draw_timeline(SHARED).bars)
    assert "longest for x:0 (3.91 KiB), 5 ms ± 25% on its own link: shares switch" in write_verdict(SHARED)
    assert "5 ms ± 25% on its own link: shares switch  " in write_summary(SHARED)
    assert SAID in schedule_data(SHARED)["sharing"].values()


def test_a_copy_says_that_a_link_is_slower_than_its_own() -> None:
    done = run(
        "x = Placeholder() @c {dtype=float, shape=dims(1000)}\nA = Neg(x) @g0", switch("card", 0, bandwidth=500_000)
    )
    (said,) = schedule_data(done)["sharing"].values()
    assert said == "5 ms ± 25% on its own link: card is slower"


def test_a_trace_and_json_have_what_was_shared() -> None:
    report = json.loads(json.dumps(report_schedule(SHARED, "")))
    assert report["shared_links"][0] == {
        "name": "switch", "bandwidth": 1e6, "sharers": ["GPU:0", "GPU:1"], "copies": 2, "members": 0, "busy": 8_000_000,
        "share": 0.8, "took": 18_000_000, "alone": 10_000_000,
    }  # fmt: skip
    sharing = [
        (report["lanes"][span["lane"]]["name"], span["sharing"]) for span in report["spans"] if "sharing" in span
    ]
    lanes = {lane["name"]: i for i, lane in enumerate(report["lanes"])}
    assert sharing == [
        (
            "GPU:0 from host",
            {"alone": 5_000_000, "links": [0, 1], "slowed_by": 0, "others": [lanes["GPU:1 from host"]]},
        ),
        (
            "GPU:1 from host",
            {"alone": 5_000_000, "links": [0, 1], "slowed_by": 0, "others": [lanes["GPU:0 from host"]]},
        ),
    ]
    events = [event["args"] for event in chrome_trace(SHARED)["traceEvents"] if event.get("cat") == "copy"]
    assert [(args["alone (µs)"], args["passes"]) for args in events] == [(5000.0, ["switch", "port"])] * 2


def test_without_links_outputs_have_no_word_of_them() -> None:
    report = report_schedule(run(BOTH_FROM_HOST), "")
    assert report["shared_links"] == []
    assert report["split_cards"] == []
    assert not any("sharing" in span for span in report["spans"])


def test_json_has_the_cards_that_are_split() -> None:
    halves = local_devices([("CPU", 1), ("GPU", 2)]).on_cards(dict.fromkeys(GPUS[:2], 3))
    done = run(BOTH_FROM_HOST, devices=halves)
    assert report_schedule(done, "")["split_cards"] == [
        {"number": 3, "gpus": ["GPU:0", "GPU:1"], "busy": 2_000_000, "share": round(2 / 7, 6)}
    ]
    assert report_schedule(run(BOTH_FROM_HOST), "")["split_cards"] == []
    textbook = simulated(BOTH_FROM_HOST, (), Wires(), "textbook", halves)
    assert report_schedule(textbook, "")["split_cards"] == []  # there kernels of halves run at once
