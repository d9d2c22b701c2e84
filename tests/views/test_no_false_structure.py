"""Boxes show no structure that the graph does not have: no cycle, no join of what is for different things."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplace.result import Placed
from simplace.views.figures.acyclic_groups import has_cycle, split_cycles
from simplace.views.figures.overview_figure import overview_figure
from simplace.views.figures.partition_figure import partition_figure
from simplace.views.figures.placement_figure import placement_figure
from tests.views import graphs
from tests.views.drawn_cycles import is_drawn_acyclic
from tests.worlds import constant, node, place

SCOPES = ("", "dense/", "dense_1/", "model/conv/", "model/dense/", "gradient_tape/model/", "sgd/", "compile_loss/")
FIGURES = (overview_figure, placement_figure, partition_figure)
OPS = ("AddV2", "Mul", "Sub")


@st.composite
def dags(draw: st.DrawFn) -> list[str]:
    """Draw a graph without cycles: ops of few types and scopes, each reading two earlier ones, on three devices."""
    lines = [constant("x", (4,), "/cpu:0")]
    names = ["x"]
    for i in range(draw(st.integers(1, 60))):
        name = f"{draw(st.sampled_from(SCOPES))}op_{i}"
        inputs = [names[-1 - draw(st.integers(0, min(len(names) - 1, 8)))] for _ in range(2)]
        device = draw(st.sampled_from(("/cpu:0", "/gpu:0", "/gpu:0", "/gpu:1")))
        control = [f"^{draw(st.sampled_from(names))}"] if draw(st.integers(0, 9)) == 0 else []
        lines.append(node(name, draw(st.sampled_from(OPS)), *inputs, *control, device=device))
        names.append(name)
    return lines


@given(dags(), st.integers(1, 40))
def test_a_graph_without_cycles_is_drawn_without_cycles(lines: list[str], limit: int) -> None:
    placed = Placed(place(*lines))
    for draw_figure in FIGURES:
        figure = draw_figure(placed, limit)
        assert is_drawn_acyclic(figure)


@given(dags(), st.integers(1, 40))
def test_a_figure_has_at_most_as_many_boxes_as_requested(lines: list[str], limit: int) -> None:
    placed = Placed(place(*lines))
    for draw_figure in FIGURES:
        figure = draw_figure(placed, limit)
        boxes = [one for one in figure.nodes if one.kind != "copy"]
        assert len(boxes) <= max(limit, len(figure.groups))


@given(dags())
def test_an_overview_counts_each_copy_once(lines: list[str]) -> None:
    placed = Placed(place(*lines))
    figure = overview_figure(placed)
    assert sum(edge.count for edge in figure.edges if edge.kind == "copy") == placed.traffic.copies.count


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=80), st.integers(1, 6), st.integers(0, 5))
def test_groups_are_split_or_joined_until_no_cycle_is_left(
    pairs: list[tuple[int, int]], groups: int, more: int
) -> None:
    edges = [(min(pair), max(pair)) for pair in pairs if pair[0] != pair[1]]
    given_groups = [[node for node in range(31) if node % groups == i] for i in range(groups)]
    found = split_cycles(given_groups, edges, more)
    number = {node: i for i, group in enumerate(found) for node in group}
    assert sorted(number) == list(range(31))
    assert len(found) <= groups + more
    between = {(number[one], number[other]) for one, other in edges if number[one] != number[other]}
    assert not has_cycle(between)


@pytest.mark.parametrize("limit", [6, 14, 24, 40])
def test_a_training_step_is_drawn_without_cycles(limit: int) -> None:
    placed = Placed(graphs.training_step(40))
    assert [is_drawn_acyclic(draw_figure(placed, limit)) for draw_figure in FIGURES] == [True, True, True]
