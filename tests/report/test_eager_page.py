"""The page of a program that runs everything outside of functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from simplace.result import Result
from tests.report import worlds
from tests.report.conftest import Opened


def eager_only() -> Result:
    """Return a result without graphs: three ops of one line on the CPU."""
    return replace(worlds.with_eager(worlds.towers()), programs=())


def test_it_has_the_figure_of_the_lines_in_place_of_a_graph(opened: Callable[[Result], Opened]) -> None:
    page = opened(eager_only())
    assert page.value("document.querySelector('.drawing img').naturalWidth > 100")
    assert page.find("header .verdict").get_attribute("class") == "verdict unchecked"
    assert [tab.text for tab in page.all("[role=tab]") if tab.is_displayed()] == ["Graph", "Agreement"]
    assert [row.text for row in page.all("#panel-summary table:first-of-type tbody tr")][:3] == [
        "CPU:0 3 3 -",
        "GPU:0 0 0 -",
        "GPU:1 0 0 -",
    ]
    for hidden in (".toolbar", "#canvas", ".program", ".skip"):
        assert not page.find(hidden).is_displayed()


def test_keys_of_the_graph_do_nothing_there(opened: Callable[[Result], Opened]) -> None:
    page = opened(eager_only())
    page.find("body").send_keys("/n+-0i", "\ue00c", "\ue015")
    page.find("#tab-agreement").click()
    assert page.find("#panel-agreement").is_displayed()
    page.find("#tab-graph").click()
    assert page.find(".drawing").is_displayed()
