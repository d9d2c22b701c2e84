"""What a notebook shows."""

from __future__ import annotations

from xml.etree import ElementTree

from simplace.placement.placement import Placement
from simplace.result import Placed, Result
from simplace.views.notebook import write_html
from tests.views import graphs
from tests.worlds import constant, node, place, shipped


def result(*placements: Placement) -> Result:
    placed = tuple(Placed(one) for one in placements)
    return Result("model.py", "2.21", shipped().name, placements[0].devices, placed)


def test_notebook_shows_tables_figure_and_agreement() -> None:
    shown = write_html(result(graphs.towers(2)))
    assert [part in shown for part in ("<table", "<svg", "CPU:0 → GPU:0", "not checked against TensorFlow")] == [
        True
    ] * 4
    ElementTree.fromstring(shown)


def test_names_from_the_program_are_escaped() -> None:
    shown = write_html(
        result(place(constant("<script>x", (2,), "/cpu:0"), node("<b>&", "Relu", "<script>x"), name="<i>"))
    )
    assert "<script>" not in shown
    assert "<b>&" not in shown
    assert "<i>" not in shown


def test_only_the_largest_programs_are_drawn() -> None:
    shown = write_html(result(*(graphs.chain(count) for count in (3, 4, 5, 6))))
    assert shown.count("<svg") == 3
    assert shown.count("<details") == 4


def test_refused_placement_says_why() -> None:
    refused = place(constant("c", (2,)), node("bad", "Relu", "c", device="/gpu:7"), soft=False)
    assert "TensorFlow refuses this graph (INVALID_ARGUMENT): " in write_html(result(refused))
