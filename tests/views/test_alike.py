"""Devices that do the same are drawn as one, where they are many."""

from __future__ import annotations

import pytest

from simplace.result import Placed
from simplace.views.figures.alike_devices import figure_boxes
from simplace.views.figures.placement_figure import placement_figure
from tests.views import graphs


@pytest.mark.parametrize(("gpus", "drawn"), [(2, 3), (4, 5), (6, 7), (7, 2), (9, 2), (64, 2)])
def test_many_devices_alike_are_one(gpus: int, drawn: int) -> None:
    alike = figure_boxes(Placed(graphs.towers(gpus)), 40)
    assert len(alike.devices) == drawn
    assert len(alike.stands_for) == gpus + 1


def test_where_there_is_room_each_device_is_drawn() -> None:
    placed = Placed(graphs.towers(6))
    assert [len(figure_boxes(placed, limit).devices) for limit in (38, 39)] == [2, 7]


def test_two_alike_are_one_where_there_is_not_a_box_for_each_device() -> None:
    placed = Placed(graphs.towers(2, layers=9))
    assert [len(figure_boxes(placed, limit).devices) for limit in (2, 3)] == [2, 3]


@pytest.mark.parametrize("limit", [3, 7, 20])
def test_a_device_has_one_box_at_least_and_no_more_than_there_is_room_for(limit: int) -> None:
    alike = figure_boxes(Placed(graphs.towers(2, layers=9)), limit)
    assert len(alike.devices) == 3
    assert len(alike.boxes) <= max(limit, 3)


def test_a_device_that_differs_stands_alone() -> None:
    placement = graphs.towers(12)
    odd = next(i for i, name in enumerate(placement.graph.names) if name == "out_7")
    placement.graph.ops[odd] = "Exp"
    families = figure_boxes(Placed(placement), 40).devices.values()
    assert sorted(map(len, families)) == [1, 1, 11]


def test_the_group_says_how_many_it_stands_for() -> None:
    figure = placement_figure(Placed(graphs.towers(64)))
    assert [(group.title, group.subtitle) for group in figure.groups] == [
        ("CPU:0", "3 ops"), ("GPU:0 … GPU:63", "64 devices alike, 6 ops each"),
    ]  # fmt: skip
