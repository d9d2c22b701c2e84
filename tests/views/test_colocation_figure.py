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
    assert [(group.title, group.subtitle) for group in figure.groups] == [
        ("GPU:0: 3 groups of 3 nodes", "decided by v0: its request")
    ]
    assert [one.label for one in figure.nodes] == ["v0", "ReadVariableOp ×2"]
    assert [(edge.kind, edge.label) for edge in figure.edges] == [("tie", "resource edge")]


def test_no_group_is_said_so() -> None:
    figure = colocation_figure(Placed(place(constant("a", (2,)), node("b", "Neg", "a"))))
    assert (figure.nodes, figure.caption) == ((), "no node is colocated with another")


@pytest.mark.parametrize("style", ["screen", "paper"])
def test_groups_keep_their_order_and_nothing_overlaps(style: str) -> None:
    lines = [line.replace("gpu:0", f"gpu:{i // 3}") for i, line in enumerate(variables(3))]
    figure = colocation_figure(Placed(place(*lines, gpus=3)))
    found = measure_layout(figure, STYLES[style])
    assert len(figure.groups) == 3
    assert (found.is_in_order, found.through_boxes, found.through_titles, found.overlaps) == (True, 0, 0, 0)
    assert found.empty < 0.35
