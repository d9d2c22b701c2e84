"""What is drawn of two placements: moved and new nodes are marked."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from simplace.changes.placement_changes import ProgramChanges, compare_programs
from simplace.result import Placed
from simplace.views.figures.change_figure import change_figure, detailed_change_figure, side_by_side
from tests.views import graphs
from tests.worlds import constant, node, place
from viz import to_dot


def moved() -> ProgramChanges:
    before = place(constant("a", (2,), "/cpu:0"), node("b", "Relu", "a", device="/gpu:0"), node("c", "Neg", "b"))
    after = place(constant("a", (2,), "/cpu:0"), node("b", "Relu", "a", device="/gpu:1"), node("d", "Exp", "b"))
    return compare_programs(Placed(before), Placed(after))


def test_dot_is_the_golden_text(golden: Callable[[str, str], None]) -> None:
    golden("changes.dot", to_dot(change_figure(moved())))
    golden("side_by_side.dot", to_dot(side_by_side(moved())))


def test_moved_and_new_nodes_are_marked() -> None:
    figure = change_figure(moved())
    assert {one.sublabel: one.changed for one in figure.nodes} == {"a": "", "b": "from GPU:0", "d": "new"}
    assert figure.caption.startswith("1 of 2 nodes moved, 1 new, 1 removed, 2 copies gained (≥ 8 B), 1 copy lost (8 B)")


def test_a_collapsed_box_counts_what_moved_into_it() -> None:
    def fan(device: str) -> Placed:
        lines = [constant("c", (2,), "/gpu:0")]
        where = [device if i < 3 else "/gpu:0" for i in range(60)]
        return Placed(place(*lines, *(node(f"s/Relu_{i}", "Relu", "c", device=where[i]) for i in range(60))))

    figure = detailed_change_figure(compare_programs(fan("/gpu:1"), fan("/gpu:0")))
    assert [one.changed for one in figure.nodes if one.label == "Relu ×60"] == ["3 from GPU:1"]


def test_both_placements_stand_side_by_side() -> None:
    placed = Placed(graphs.towers(2))
    figure = side_by_side(compare_programs(placed, placed))
    assert [(group.frame, group.title) for group in figure.groups] == [
        (when, device) for when in ("before", "after") for device in ("CPU:0", "GPU:0", "GPU:1")
    ]


def test_the_parts_of_an_overview_count_what_moved_into_them() -> None:
    def tower(device: str) -> Placed:
        names = [f"{layer}/op_{i}" for layer in ("first", "second") for i in range(20)]
        return Placed(
            place(
                constant("x", (2,), "/cpu:0"),
                *(
                    node(name, "Neg", before, device=device if name.startswith("second") else "/gpu:0")
                    for before, name in pairwise(["x", *names])
                ),
            )
        )

    figure = change_figure(compare_programs(tower("/gpu:1"), tower("/gpu:0")))
    assert {one.label: one.changed for one in figure.nodes} == {"Const": "", "first": "", "second": "from GPU:1"}
    assert figure.title.endswith("what changed")
