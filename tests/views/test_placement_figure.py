"""What is drawn of a placement."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from benchmarks.figure_layout import measure_layout
from simplace.devices.device_set import seen_from_the_first
from simplace.graph.graph_def import parse_text
from simplace.pipeline import place_program
from simplace.placement.placement import Placement
from simplace.program.program import ObservedRun, Program, SessionRun
from simplace.result import Placed
from simplace.views.figures.placement_figure import device_group, placement_figure
from tests.views import graphs
from tests.worlds import GPU0, constant, node, place, shipped
from viz import STYLES, Figure, to_dot

WORLDS: dict[str, Callable[[], Placement]] = {
    "empty": graphs.empty,
    "two_towers": lambda: graphs.towers(2),
    "training_step": lambda: graphs.training_step(100),
    "loop": graphs.loop,
}


def draw(placement: Placement, limit: int = 40) -> Figure:
    return placement_figure(Placed(placement), limit)


@pytest.mark.parametrize("world", WORLDS)
def test_dot_is_the_golden_text(world: str, golden: Callable[[str, str], None]) -> None:
    golden(f"{world}.dot", to_dot(draw(WORLDS[world]())))


def test_copies_of_what_a_session_is_fed_and_fetches_are_counted_where_they_are_not_drawn() -> None:
    placement = place(node("fed", "Placeholder", device="/gpu:0"), node("a", "Neg", "fed", device="/gpu:0"),
                      node("b", "Neg", "a", device="/cpu:0"))  # fmt: skip
    run = ObservedRun(SessionRun(("fed:0",), ("a:0", "b:0")), "model.py:7")
    figure = draw(replace(placement, program=replace(placement.program, runs=(run,))))
    assert figure.title == "Split over CPU:0 and GPU:0: 2 copies of unknown size per step"
    assert [(edge.source, edge.target) for edge in figure.edges if edge.kind == "copy"] == [("1", "2")]
    assert "not drawn: 1 copy of what is fed or fetched" in figure.caption


@pytest.mark.parametrize("style", ["screen", "paper"])
def test_devices_keep_their_order_and_no_line_runs_through_anything(style: str) -> None:
    found = measure_layout(draw(graphs.towers(4), 24), STYLES[style])
    assert (found.is_in_order, found.through_boxes, found.through_titles, found.overlaps) == (True, 0, 0, 0)


def test_no_line_runs_through_anything_where_there_are_many() -> None:
    figure = draw(graphs.chain(120), 200)
    found = measure_layout(figure, STYLES["screen"])
    assert (len(figure.edges), found.through_boxes, found.through_titles, found.overlaps) == (118, 0, 0, 0)


def test_many_lines_are_left_to_graphviz() -> None:
    few, many = (draw(graphs.chain(count), 200) for count in (162, 163))
    assert [(len(figure.edges), figure.arrangement) for figure in (few, many)] == [(160, "rows"), (161, "ranks")]


@pytest.mark.parametrize("limit", [1, 12, 40])
@pytest.mark.parametrize("gpus", [1, 2, 8, 64])
def test_no_copy_between_devices_is_lost(gpus: int, limit: int) -> None:
    placed = Placed(graphs.towers(gpus))
    figure = placement_figure(placed, limit)
    listed = [copy for copy in placed.copies if copy.source != copy.target and not copy.is_control]
    assert sum(edge.count for edge in figure.edges if edge.kind == "copy") == len(listed) == gpus * 3
    assert len(figure.groups) == (2 if gpus >= 8 or limit == 1 else gpus + 1)
    assert sum(one.kind != "copy" for one in figure.nodes) <= max(limit, len(figure.groups))


def test_copy_that_several_ops_read_is_drawn_once() -> None:
    figure = draw(place(constant("c", (256,), "/cpu:0"), node("a", "Relu", "c", device="/gpu:0"),
                        node("b", "Neg", "c", device="/gpu:0")))  # fmt: skip
    copy = next(one for one in figure.nodes if one.kind == "copy")
    assert (copy.label, copy.sublabel, copy.group) == ("float32 [256]", "1 KiB", GPU0)
    assert [(e.source, e.target, e.kind) for e in figure.edges] == [
        ("0", "copy 1", "copy"), ("copy 1", "1", "data"), ("copy 1", "2", "data"),
    ]  # fmt: skip


def test_copy_for_one_op_says_what_it_is() -> None:
    figure = draw(place(constant("c", (256,), "/cpu:0"), node("a", "Relu", "c", device="/gpu:0")))
    assert [edge.label for edge in figure.edges] == ["float32 [256] · 1 KiB"]


def test_request_not_granted_is_marked() -> None:
    figure = draw(place(constant("c", (2,)), node("a", "Relu", "c", device="/gpu:7")))
    assert [one.requested for one in figure.nodes] == ["", "GPU:7"]


def test_collapsed_box_counts_requests_not_granted() -> None:
    lines = [constant("c", (2,), "/gpu:0")]
    lines += [node(f"scope/Relu_{i}", "Relu", "c", device="/gpu:7" if i < 3 else "/gpu:0") for i in range(60)]
    figure = draw(place(*lines))
    assert [one.requested for one in figure.nodes if one.label == "Relu ×60"] == ["GPU:7 (3 ops)"]


def test_request_of_a_folded_node_is_marked() -> None:
    figure = draw(graphs.passing_on("/gpu:7"))
    assert [(one.label, one.requested) for one in figure.nodes] == [("Const", "GPU:7 (20 ops)")]


def test_host_memory_is_marked_on_gpus_only() -> None:
    shape = 'attr { key: "out_type" value { type: DT_INT32 } }'
    figure = draw(place(constant("c", (2,)), node("on_gpu", "Shape", "c", device="/gpu:0", extra=shape),
                        node("on_cpu", "Shape", "c", device="/cpu:0", extra=shape)))  # fmt: skip
    assert [one.sublabel for one in figure.nodes if one.host_memory] == ["on_gpu"]


def test_control_edges_of_a_small_graph_are_drawn() -> None:
    figure = draw(place(constant("a", (2,)), node("b", "Relu", "a"), node("c", "Neg", "a", "^b")))
    assert [(edge.source, edge.target) for edge in figure.edges if edge.kind == "control"] == [("1", "2")]


def test_refused_placement_shows_what_could_not_be_placed() -> None:
    figure = draw(place(constant("c", (2,), "/cpu:0"), node("bad", "Relu", "c", device="/gpu:7"), soft=False))
    assert figure.title == "TensorFlow refuses world: bad requests GPU:7, which is not there"
    assert figure.caption == "INVALID_ARGUMENT"
    assert "1 node" not in figure.description
    bad = next(one for one in figure.nodes if one.sublabel == "bad")
    assert (bad.group, bad.requested) == (None, "GPU:7")


def test_refused_constant_is_not_drawn_with_a_node_that_was_not_reached() -> None:
    lines = [constant("fine", (2,), "/cpu:0"), *(node(f"r{i}", "Relu", "fine", device="/cpu:0") for i in range(20))]
    lines += [constant("bad", (2,), "/gpu:7"), node("later", "Relu", "bad")]
    figure = draw(place(*lines, soft=False))
    assert [one.sublabel for one in figure.nodes if one.requested] == ["bad"]


def test_the_title_says_how_the_step_is_spread_and_the_caption_what_it_is() -> None:
    figure = draw(graphs.towers(2))
    assert figure.title == "The same ops on 2 GPUs: 6 copies, ≥ 1 KiB per step"
    assert figure.caption == "world · 6 copies between devices, ≥ 1 KiB · 15 nodes"


def list_labels(figure: Figure) -> list[str]:
    return [edge.label for edge in figure.edges if edge.label]


def test_labels_of_copies_are_brief_where_many_join_devices_of_one_box_each() -> None:
    def exchange(gpus: int) -> Figure:
        lines = [constant(f"{i}/{k}", (4,), f"/gpu:{i}") for i in range(gpus) for k in range(2)]
        lines += [
            node(f"{i}/{j}/{k}", "Neg", f"{j}/{k}", device=f"/gpu:{i}")
            for i in range(gpus) for j in range(gpus) if i != j for k in range(2)
        ]  # fmt: skip
        return draw(place(*lines, gpus=gpus), gpus)

    assert [(len(list_labels(figure)), set(list_labels(figure))) for figure in map(exchange, (3, 4))] == [
        (6, {"2 × float32 [4] · 32 B"}),
        (12, {"2 tensors · 32 B"}),
    ]


def test_a_box_of_several_scopes_says_its_ops() -> None:
    ops = ("Neg", "Relu", "Exp", "Neg", "Relu", "Neg")
    lines = [constant("c", (4,), "/gpu:0"), *(node(f"s{i}/x", op, "c") for i, op in enumerate(ops))]
    lines += [node(f"t{i}/x", op, "c") for i, op in enumerate(ops)]
    assert [(one.label, one.sublabel) for one in draw(place(*lines), 1).nodes] == [("Neg, Relu, …", "3 types of ops")]


def test_idle_devices_are_named() -> None:
    assert "nothing runs on CPU:0, GPU:1" in draw(place(constant("a", (2,)), node("b", "Relu", "a"))).caption


def test_edges_of_a_collapsed_graph_leave_out_what_paths_imply() -> None:
    figure = draw(graphs.training_step(100), limit=12)
    assert {(edge.source, edge.target) for edge in figure.edges} == {("0", "1"), ("1", "2"), ("2", "3")}
    assert "not drawn: 1 data edge" in figure.caption


def on_a_cluster(*nodes: str) -> Placement:
    names = [f"/job:{task}/device:{d}" for task in ("ps/replica:0/task:0", "worker/replica:0/task:3")
             for d in ("CPU:0", "GPU:0", "GPU:1")]  # fmt: skip
    program = Program("world", "graph", parse_text("\n".join(nodes)), soft_placement=True)
    return place_program(program, seen_from_the_first(names), shipped())


def test_devices_of_a_task_are_in_its_box_and_one_alone_is_named_after_it() -> None:
    figure = draw(
        on_a_cluster(
            constant("a", (2,), "/job:ps/device:CPU:0"),
            node("b", "Neg", "a", device="/job:worker/device:GPU:1"),
            node("c", "Exp", "b", device="/job:worker/device:CPU:0"),
        )
    )
    assert [(group.frame, group.title) for group in figure.groups] == [
        ("", "ps/0/CPU:0"),
        ("task 3 of job worker", "CPU:0"),
        ("task 3 of job worker", "GPU:1"),
    ]


def test_devices_drawn_as_one_are_in_the_box_of_their_task_alone() -> None:
    placed = Placed(on_a_cluster(constant("a", (2,))))
    ps0, ps1 = (f"/job:ps/replica:0/task:0/device:GPU:{i}" for i in range(2))
    worker = "/job:worker/replica:0/task:3/device:GPU:1"
    of_one, of_two = device_group(placed, (ps0, ps1), 0), device_group(placed, (ps0, ps1, worker), 0)
    assert (of_one.frame, of_one.title) == ("task 0 of job ps", "GPU:0 … GPU:1")
    assert (of_two.frame, of_two.title) == ("", "ps/0/GPU:0 … worker/3/GPU:1")


def test_one_task_has_no_box() -> None:
    assert {group.frame for group in draw(graphs.towers(2)).groups} == {""}
