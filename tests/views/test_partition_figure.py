"""What is drawn of a partition: a send and a receive per transfer."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import pytest

from benchmarks.figure_layout import measure_layout
from simplace.program.program import ObservedRun, SessionRun
from simplace.result import Placed
from simplace.views.figures.drawing import fit_boxes
from simplace.views.figures.partition_figure import partition_figure
from tests.views import graphs
from tests.worlds import GPU0, constant, node, place
from viz import STYLES, to_dot
from viz.engine import run_graphviz
from viz.laid_out import finished
from viz.layout import lay_out
from viz.style import SCREEN


@pytest.mark.parametrize("world", ["two_towers", "loop"])
def test_dot_is_the_golden_text(world: str, golden: Callable[[str, str], None]) -> None:
    placement = graphs.towers(2) if world == "two_towers" else graphs.loop()
    golden(f"partition_{world}.dot", to_dot(partition_figure(Placed(placement))))


def test_a_fetch_to_a_device_without_ops_is_a_subgraph_that_is_told_and_not_drawn() -> None:
    placement = place(constant("x", (4,), "/gpu:0"), node("a", "Neg", "x", device="/gpu:0"))
    run = ObservedRun(SessionRun((), ("a:0",)), "model.py:7")
    figure = partition_figure(Placed(replace(placement, program=replace(placement.program, runs=(run,)))))
    assert [group.title for group in figure.groups] == ["GPU:0"]
    assert figure.title == "2 subgraphs: 1 tensor of unknown size per step, by _Send and _Recv"
    assert figure.caption.endswith("1 copy between devices, unknown size · not drawn: 1 copy of what is fed or fetched")


def test_a_transfer_has_its_send_and_its_receive() -> None:
    figure = partition_figure(Placed(place(constant("c", (256,), "/cpu:0"), node("a", "Relu", "c", device="/gpu:0"))))
    ends = {one.kind: (one.label, one.sublabel, one.group) for one in figure.nodes if one.kind in ("send", "receive")}
    assert ends["receive"] == ("_Recv", "c:0", GPU0)
    assert ends["send"][0] == "_Send"
    assert [(edge.source, edge.target, edge.label) for edge in figure.edges] == [
        ("send 1", "receive 1", "float32 [256] · 1 KiB"), ("0", "send 1", ""), ("receive 1", "1", ""),
    ]  # fmt: skip


def test_order_alone_is_sent_for_a_control_edge() -> None:
    lines = [
        constant("c", (2,), "/cpu:0"),
        constant("d", (2,), "/gpu:0"),
        node("a", "Relu", "d", "^c", device="/gpu:0"),
    ]
    figure = partition_figure(Placed(place(*lines)))
    assert [edge.label for edge in figure.edges if edge.kind == "copy"] == ["control signal"]
    assert "1 control signal" in figure.caption


def test_a_refused_graph_has_no_subgraphs() -> None:
    lines = [constant("c", (2,), "/cpu:0"), node("bad", "Relu", "c", device="/gpu:7")]
    assert (
        partition_figure(Placed(place(*lines, soft=False))).title
        == "TensorFlow refuses world: bad requests GPU:7, which is not there"
    )


@pytest.mark.parametrize("gpus", [2, 8, 64])
def test_every_transfer_is_counted(gpus: int) -> None:
    placed = Placed(graphs.towers(gpus))
    figure = partition_figure(placed)
    assert sum(edge.count for edge in figure.edges if edge.kind == "copy") == len(placed.copies) == gpus * 3
    assert figure.title.startswith(f"{gpus + 1} subgraphs: {3 * gpus} tensors, ≥ ")


@pytest.mark.parametrize(
    ("limit", "sends"),
    [
        (40, ["_Send", "_Send", "_Send", "_Send", "_Send", "_Send"]),
        (10, ["_Send", "_Send", "_Send ×4"]),
        (3, []),
    ],
)
def test_sends_and_receives_share_boxes_where_there_is_little_room(limit: int, sends: list[str]) -> None:
    figure = partition_figure(Placed(graphs.towers(2)), limit)
    assert sorted(one.label for one in figure.nodes if one.kind == "send") == sends
    assert len(figure.nodes) <= limit
    assert sum(edge.count for edge in figure.edges if edge.kind == "copy") == 6


def test_boxes_say_how_many_sends_and_receives_they_have_where_none_is_drawn() -> None:
    figure = partition_figure(Placed(graphs.towers(2)), 3)
    assert [one.sublabel for one in figure.nodes] == ["_Send ×4, _Recv ×2", "_Recv ×2, _Send ×1", "_Recv ×2, _Send ×1"]


@pytest.mark.parametrize("style", ["screen", "paper"])
def test_devices_keep_their_order_and_the_text_of_a_page_is_legible(style: str) -> None:
    figure = fit_boxes(partial(partition_figure, Placed(graphs.towers(4))), style, STYLES[style].boxes)
    found = measure_layout(figure, STYLES[style])
    assert (found.is_in_order, found.through_boxes, found.through_titles, found.overlaps) == (True, 0, 0, 0)
    assert found.text >= STYLES[style].least


def test_lines_end_at_the_outlines_of_sends_and_receives() -> None:
    figure = partition_figure(Placed(graphs.towers(2)))
    laid = json.loads(run_graphviz(finished(lay_out(figure, SCREEN), SCREEN), "json", 72, 60))
    shapes = [
        next(mark["points"] for mark in one["_draw_"] if mark["op"] == "P")
        for one in laid["objects"]
        if one.get("shape") in ("house", "invhouse") and not one["name"].startswith("legend")
    ]
    assert len(shapes) == 12
    tips = [
        list(map(float, edge["pos"].partition(" ")[0][2:].split(","))) for edge in laid["edges"] if "e," in edge["pos"]
    ]
    for points in shapes:
        near = [tip for tip in tips if is_near(tip, points)]
        assert near, "what is sent or received is drawn as an arrow"
        assert [tip for tip in near if measure_distance(tip, points) > 0.5] == []


def is_near(point: Sequence[float], corners: Sequence[Sequence[float]]) -> bool:
    """Return whether a point is in the box around a polygon, or at its rim."""
    sides = [sorted(axis)[:: len(corners) - 1] for axis in zip(*corners, strict=True)]
    return all(low - 6 < at < high + 6 for at, (low, high) in zip(point, sides, strict=True))


def measure_distance(point: Sequence[float], corners: Sequence[Sequence[float]]) -> float:
    """Return how far a point is from the nearest edge of a polygon."""
    return min(_measure_edge(point, *edge) for edge in zip(corners, [*corners[1:], corners[0]], strict=True))


def _measure_edge(point: Sequence[float], start: Sequence[float], end: Sequence[float]) -> float:
    along = (end[0] - start[0], end[1] - start[1])
    share = ((point[0] - start[0]) * along[0] + (point[1] - start[1]) * along[1]) / math.hypot(*along) ** 2
    share = min(max(share, 0), 1)
    return math.dist(point, (start[0] + share * along[0], start[1] + share * along[1]))
