"""Where the times of a path come from, and what the text and the JSON say of it."""

import re
from math import hypot
from unittest.mock import ANY

import pytest

from simplace.analysis.schedule import schedule_placement
from simplace.analysis.time_sources import find_cost, find_source, share_sources
from simplace.costs.cost_model import COPY_ERROR, GUESSED_ERROR, MEASURED_ERROR, KernelCost, OpCall, Overheads
from simplace.costs.modelled_costs import make_modelled_costs
from simplace.costs.recorded_costs import RecordedCosts
from simplace.explain.finding_lines import format_error
from simplace.exports.chrome_trace import chrome_trace
from simplace.exports.schedule_report import report_schedule
from simplace.report.schedule_data import schedule_data
from simplace.views.figures.memory_chart import memory_chart
from simplace.views.figures.parallelism_chart import parallelism_chart
from simplace.views.figures.timeline import draw_timeline
from simplace.views.text.cost_sentences import format_makespan
from simplace.views.text.schedule_tables import write_summary
from simplace.views.text.verdict import write_step_verdict
from tests.executor.worlds import MS, Costs, placed

WORLD = """
    x = Placeholder() @g0 {dtype=float, shape=shape}
    A = AddV2(x, x) @g0
    B = Neg(A) @c
"""


@pytest.fixture
def done():
    costs = RecordedCosts("costs.json", {"B": 3e-3}, make_modelled_costs("t4"))
    return schedule_placement(placed(WORLD), costs=costs, inter_op=1)


def test_a_path_is_shared_among_its_sources(done) -> None:
    path = [done.trace.spans[i] for i in done.critical_path]
    shares = share_sources(done.estimated, path)
    assert [one.source for one in shares] == ["measured", "modelled", "guessed"]
    assert sum(one.share for one in shares) == pytest.approx(1)
    assert shares[1].error == make_modelled_costs("t4").constants.errors["latency"]
    assert (shares[0].error, shares[2].error) == (MEASURED_ERROR, pytest.approx(0.4, abs=0.01))


def test_what_the_executor_takes_is_measured_if_a_file_has_it_but_no_launch_of_a_gpu(done) -> None:
    costs = RecordedCosts("costs.json", {"B": 3e-3}, make_modelled_costs("t4"), fixed=Overheads(op_s=1e-6))
    recorded = schedule_placement(placed(WORLD), costs=costs, inter_op=1)
    found = {
        span.kind: find_source(recorded.estimated, span)[:2]
        for span in recorded.trace.spans
        if find_cost(recorded.estimated, span) is None or recorded.estimated.graph.nodes[span.node].role == "recv"
    }
    assert found == {
        "op": ("measured", MEASURED_ERROR),
        "launch": ("guessed", GUESSED_ERROR),
        "copy": ("guessed", COPY_ERROR),
    }


def test_nothing_has_no_sources(done) -> None:
    assert share_sources(done.estimated, []) == ()


def test_text_and_json_tell_them(done) -> None:
    text, report = write_summary(done), report_schedule(done, "busy")
    errors = make_modelled_costs("t4").constants.errors
    assert "latency-bound" in text
    assert format_error(errors["latency"]) in text
    assert [one["source"] for one in report["time_sources"]] == ["measured", "modelled", "guessed"]
    long = [span for span in report["spans"] if span["end"] - span["start"] > 1e3]
    costs = {(span["node"], span["kind"]): span["cost"] for span in long}
    assert costs == {
        ("A", "launch"): {"source": "guessed", "error": GUESSED_ERROR},
        ("A", "kernel"): {"source": "modelled", "error": errors["latency"], "bound": "latency", "share": ANY},
        ("A:0/_send_0", "copy"): {"source": "guessed", "error": COPY_ERROR},
        ("B", "op"): {"source": "measured", "error": MEASURED_ERROR},
        ("B", "shard"): {"source": "measured", "error": MEASURED_ERROR},
    }
    assert report["makespan_error"] == round(done.uncertainty, 4)


def test_errors_of_a_kind_add_up_and_kinds_as_squares() -> None:
    costs = Costs({"A": 3.0, "B": 2.0}, copies=12.0)  # 5 ms of guessed kernels after 12 ms of a copy
    done = schedule_placement(placed("x = Placeholder() @c {dtype=float}\nA = Neg(x) @g0\nB = Neg(A) @g0"), costs=costs)
    assert done.trace.makespan == 17 * MS
    assert done.uncertainty == pytest.approx(hypot(0.5 * 5, 0.25 * 12) / 17)


def test_a_track_has_the_error_of_its_own_events(done) -> None:
    report, errors = report_schedule(done, "busy"), make_modelled_costs("t4").constants.errors
    found = {one["name"]: one["error"] for one in report["busy"] if one["busy"]}
    assert found == {
        "GPU:0 compute": round(errors["latency"], 4), "GPU:0 to host": COPY_ERROR, "inter-op 0": ANY,
        "intra-op 0": MEASURED_ERROR,
    }  # fmt: skip
    assert found["inter-op 0"] == pytest.approx(MEASURED_ERROR, rel=0.01)  # 3 ms of B, some microseconds of launches
    assert {one["name"]: one["error"] for one in report["devices"]} == {
        "CPU:0": MEASURED_ERROR, "GPU:0": round(errors["latency"], 4)
    }  # fmt: skip


def test_headings_of_times_within_a_step_have_its_error(done) -> None:
    error, heads = format_error(done.uncertainty), write_summary(done).splitlines()
    assert all(any(f"{head}{error}" in line for line in heads) for head in ("start", "waited", "sum over ops", "at"))


def test_a_flat_cost_is_no_prediction() -> None:
    done = schedule_placement(placed(WORLD), costs="flat")
    assert (done.uncertainty, format_makespan(done)) == (0.0, "3 ms")


def test_each_figure_and_sentence_of_a_step_says_how_far_off_it_is(done) -> None:
    shown = format_makespan(done)
    assert shown.endswith(f" ± {done.uncertainty:.0%}")
    assert draw_timeline(done).title.startswith(f"p: {shown}; ")
    captions = [draw(done).caption.partition(";")[0] for draw in (memory_chart, parallelism_chart)]
    assert captions == [f"memory over {shown}", f"parallelism over {shown}"]
    assert shown in write_step_verdict(done)
    assert write_summary(done).startswith(f"p: {shown} on")
    tooltips = [bar.tooltip.partition(" from ") for bar in draw_timeline(done).bars]
    taken, starts = [tip[0] for tip in tooltips], [tip[2].split("; ") for tip in tooltips]
    assert all(re.fullmatch(r".*, [^ ]+ .?s ± \d+% \((measured|modelled|guessed)\)", tip) for tip in taken), taken
    error = format_error(done.uncertainty)
    assert all(start == "0" or start.endswith(error) for start, *_ in starts), starts
    waits = [part for _, *parts in starts for part in parts if part.startswith("waited ")]
    assert waits
    assert all(error in wait for wait in waits), waits


def test_the_page_has_source_and_error_of_each_event(done) -> None:
    data = schedule_data(done)
    error = round(make_modelled_costs("t4").constants.errors["latency"], 3)
    assert [(one["source"], one["error"]) for one in data["sources"]] == [
        ("guessed", COPY_ERROR), ("guessed", GUESSED_ERROR), ("measured", MEASURED_ERROR), ("modelled", error),
    ]  # fmt: skip
    assert len(data["source"]) == len(data["duration"])
    assert sorted(data["errors"]) == sorted([0.0, error, MEASURED_ERROR])
    assert [data["origins"][i] for i in data["origin"]] == ["guessed", "modelled", "measured"]
    assert data["uncertainty"] == round(done.uncertainty, 3)


class _Bound(Costs):
    """Cost each GPU kernel as one that is bound by memory."""

    def kernel(self, call: OpCall) -> KernelCost:
        cost = super().kernel(call)
        return cost._replace(bound="memory", share=0.714) if cost.device_s else cost


def test_what_bounds_a_kernel_is_in_each_output() -> None:
    done, told = schedule_placement(placed(WORLD), costs=_Bound()), "memory-bound, 71% of peak bandwidth"
    assert told in write_summary(done)
    assert [bar.label for bar in draw_timeline(done).bars if f"; {told}" in bar.tooltip] == ["AddV2"]
    data = schedule_data(done)
    assert sorted(data["bounds"][i] for i in data["bound"]) == ["", "", told]
    kernels = [event["args"] for event in chrome_trace(done)["traceEvents"] if event.get("cat") == "kernel"]
    assert [(one["bound by"], one["share of peak"]) for one in kernels] == [("memory", 0.714)]
