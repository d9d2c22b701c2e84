"""What is drawn of the memory over time."""

from __future__ import annotations

from simplace.analysis.schedule import schedule_placement
from simplace.views.figures.memory_chart import memory_chart
from tests.worlds import constant, node, place


def test_a_panel_per_device_with_its_peak_and_what_holds_it() -> None:
    placement = place(constant("a", (256,), "/gpu:0"), node("b", "Neg", "a"), node("c", "Exp", "b"), gpus=1)
    (area,) = memory_chart(schedule_placement(placement, costs="flat")).areas
    assert area.group.title == "GPU:0: up to 2 KiB"
    assert max(amount for _, amount in area.points) == 2048.0
    assert area.notes[0].startswith("at the peak, ")
    assert area.notes[1:] == ("1 KiB  a", "1 KiB  b")  # c is written into b


def test_a_device_that_holds_nothing_has_no_panel() -> None:
    chart = memory_chart(schedule_placement(place(constant("a", (4,), "/cpu:0")), costs="flat"))
    assert [area.group.kind for area in chart.areas] == ["CPU"]
    assert chart.description.startswith("Simulated memory of the graph world on CPU:0, GPU:0 and GPU:1: 1 node by")
