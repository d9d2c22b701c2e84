"""Where the times of a path come from, and what the text and the JSON say of it."""

import pytest

from simplace.analysis.schedule import schedule_placement
from simplace.analysis.time_sources import SourceShare, share_sources
from simplace.costs.modelled_costs import make_modelled_costs
from simplace.costs.recorded_costs import RecordedCosts
from simplace.exports.schedule_report import report_schedule
from simplace.views.text.schedule_tables import write_summary
from tests.executor.worlds import placed

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
    assert shares[1].error == make_modelled_costs("t4").constants.errors["elementwise"]
    assert (shares[0].error, shares[2].error) == (None, None)


def test_nothing_has_no_sources(done) -> None:
    assert share_sources(done.estimated, []) == ()


def test_text_and_json_tell_them(done) -> None:
    text, report = write_summary(done), report_schedule(done, "busy")
    assert "latency-bound" in text
    assert " ± 5%" in text
    assert [one["source"] for one in report["time_sources"]] == ["measured", "modelled", "guessed"]
    by_node = {span["node"]: span["cost"] for span in report["spans"] if span["cost"]}
    assert by_node["B"] == {"source": "measured", "error": None}
    assert by_node["A"]["bound"] == "latency"
    assert SourceShare("measured", 1.0, None).error is None
