"""What is drawn of a partition: a send and a receive per transfer."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from simplace.result import Placed
from simplace.views.figures.partition_figure import partition_figure
from tests.views import graphs
from tests.worlds import GPU0, constant, node, place
from viz import to_dot


@pytest.mark.parametrize("world", ["two_towers", "loop"])
def test_dot_is_the_golden_text(world: str, golden: Callable[[str, str], None]) -> None:
    placement = graphs.towers(2) if world == "two_towers" else graphs.loop()
    golden(f"partition_{world}.dot", to_dot(partition_figure(Placed(placement))))


def test_a_transfer_has_its_send_and_its_receive() -> None:
    figure = partition_figure(Placed(place(constant("c", (256,), "/cpu:0"), node("a", "Relu", "c", device="/gpu:0"))))
    ends = {one.kind: (one.label, one.sublabel, one.group) for one in figure.nodes if one.kind in ("send", "receive")}
    assert ends["receive"] == ("_Recv", "c:0", GPU0)
    assert ends["send"][0] == "_Send"
    assert [(edge.source, edge.target, edge.label) for edge in figure.edges] == [
        ("0", "send 1", ""), ("send 1", "receive 1", "float32 [256] · 1 KiB"), ("receive 1", "1", ""),
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


@pytest.mark.parametrize("gpus", [2, 8, 64])
def test_every_transfer_is_counted(gpus: int) -> None:
    placed = Placed(graphs.towers(gpus))
    figure = partition_figure(placed)
    assert sum(edge.count for edge in figure.edges if edge.kind == "copy") == len(placed.copies) == gpus * 3
    assert figure.title == f"world, partitioned into {gpus + 1} subgraphs"
