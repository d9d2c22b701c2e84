"""What is drawn of colocation groups."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from benchmarks.figure_layout import measure_layout
from simplace.result import Placed
from simplace.views.figures.colocation_figure import colocation_figure
from tests.worlds import constant, node, place
from viz import STYLES, to_dot


def variables(count: int) -> list[str]:
    lines = []
    for i in range(count):
        resource = 'attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape { } } }'
        lines.append(f'node {{ name: "v{i}" op: "VarHandleOp" device: "/gpu:0" {resource} }}')
        dtype = 'attr { key: "dtype" value { type: DT_FLOAT } }'
        lines += [f'node {{ name: "read{i}_{k}" op: "ReadVariableOp" input: "v{i}" {dtype} }}' for k in range(2)]
    return lines


def test_dot_is_the_golden_text(golden: Callable[[str, str], None]) -> None:
    golden("colocation.dot", to_dot(colocation_figure(Placed(place(*variables(3), constant("alone", (2,)))))))


def test_groups_alike_are_one_and_members_of_an_op_are_one() -> None:
    figure = colocation_figure(Placed(place(*variables(3))))
    assert figure.title == "3 colocation groups, the largest of 3 ops on GPU:0, tied by resource edges"
    assert [(group.title, group.subtitle) for group in figure.groups] == [
        ("GPU:0: 3 groups of 3 ops", "decided by v0: its request")
    ]
    assert [one.label for one in figure.nodes] == ["v0", "ReadVariableOp ×2"]
    assert [(edge.kind, edge.label) for edge in figure.edges] == [("tie", "")]


def test_the_title_of_one_group_says_which_device_it_shares() -> None:
    figure = colocation_figure(Placed(place(*variables(1))))
    assert figure.title == "3 ops must share a device, GPU:0, tied by resource edges"


def test_groups_of_two_are_tied_by_an_edge_each() -> None:
    lines = [line for line in variables(2) if "_1" not in line.split('"')[1]]
    assert colocation_figure(Placed(place(*lines))).title.endswith(
        "the largest of 2 ops on GPU:0, tied by a resource edge each"
    )


def test_a_group_that_is_refused_has_what_cannot_hold_as_its_title_and_no_device() -> None:
    figure = colocation_figure(Placed(place(variables(1)[0].replace("gpu:0", "gpu:7"), *variables(1)[1:], soft=False)))
    assert figure.title.startswith("TensorFlow refuses world: v0 requests GPU:7")
    assert figure.caption == "world · 3 ops must share a device"
    assert [(group.title, group.kind) for group in figure.groups] == [("not placed: 3 ops", "no device")]
    first = figure.nodes[0]
    assert (first.label, first.kind, first.requested) == ("v0", "variable", "GPU:7")


def tied(name: str, op: str, *inputs: str) -> str:
    """Return a node that an attribute colocates with the variable v0."""
    return node(name, op, *inputs)[:-1] + ' attr { key: "_class" value { list { s: "loc:@v0" } } } }'


def test_edges_of_several_kinds_are_labelled_and_members_tied_alike_share_a_box_where_there_is_no_room() -> None:
    lines = [*variables(1), constant("a", (2,)), tied("b", "Neg", "a"), tied("c", "Abs", "a")]
    whole, small = (colocation_figure(Placed(place(*lines)), limit) for limit in (4, 3))
    assert [one.label for one in whole.nodes] == ["v0", "ReadVariableOp ×2", "Neg", "Abs"]
    assert [one.label for one in small.nodes] == ["v0", "ReadVariableOp ×2", "Neg, Abs"]
    labels = ["resource edge", "colocation attribute"]
    assert [sorted({edge.label for edge in figure.edges}) for figure in (whole, small)] == [sorted(labels)] * 2
    assert whole.title == "5 ops must share a device, GPU:0"


def test_members_that_request_several_devices_share_a_box_where_there_is_no_room() -> None:
    asking = (tied(f"n{gpu}", "Neg", "a")[:-1] + f' device: "/device:GPU:{gpu}" }}' for gpu in range(3))
    placed = Placed(place(*variables(1), *asking, constant("a", (2,), "/cpu:0"), gpus=3))
    whole, small = (colocation_figure(placed, limit) for limit in (5, 3))
    asked = [("Neg", f"n{gpu}") for gpu in range(3)]
    assert [(one.label, one.sublabel) for one in whole.nodes][2:] == asked
    assert [(one.label, one.sublabel) for one in small.nodes][2:] == [("Neg ×3", "requests GPU:0 … GPU:2")]


def test_without_a_group_all_devices_are_drawn_with_what_is_placed_for_itself() -> None:
    figure = colocation_figure(Placed(place(constant("a", (2,)), node("b", "Neg", "a"))))
    assert figure.title == "No op must share a device with another"
    assert figure.caption.endswith("2 ops, each for itself")
    assert [one.label for one in figure.nodes] == ["Const", "Neg"]
    assert figure.edges == ()


@pytest.mark.parametrize("style", ["screen", "paper"])
def test_groups_keep_their_order_and_nothing_overlaps(style: str) -> None:
    lines = [line.replace("gpu:0", f"gpu:{i // 3}") for i, line in enumerate(variables(3))]
    figure = colocation_figure(Placed(place(*lines, gpus=3)))
    found = measure_layout(figure, STYLES[style])
    assert len(figure.groups) == 3
    assert (found.is_in_order, found.through_boxes, found.through_titles, found.overlaps) == (True, 0, 0, 0)
    assert found.empty < 0.35
