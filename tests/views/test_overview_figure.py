"""The overview: what a step does on each device, and what devices send each other, as a person would draw it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest

from simplace.placement.placement import Placement
from simplace.program.program import ObservedRun, SessionRun
from simplace.result import Placed
from simplace.views.figures.drawing import draw_picture
from simplace.views.figures.overview_figure import overview_figure
from simplace.views.figures.placement_figure import placement_figure
from tests.views import graphs
from tests.worlds import constant, node, place
from viz import Figure, to_dot


def draw(placement: Placement, limit: int = 40) -> Figure:
    return overview_figure(Placed(placement), limit)


def titles(figure: Figure) -> list[str]:
    return [f"{box.label} ({box.count}) {box.sublabel}" for box in figure.nodes]


def variable(name: str, device: str) -> str:
    shape = 'attr { key: "shape" value { shape { dim { size: 4 } } } }'
    return node(name, "VarHandleOp", device=device, extra=shape)


def read(name: str, device: str) -> str:
    return node(f"{name}/Read", "ReadVariableOp", name, device=device)


def step(forward: str, update: str) -> Placement:
    """Place one training step: a variable, a layer, a loss, gradients and what writes the variable."""
    return place(
        constant("x", (4,), forward),
        variable("dense/kernel", update),
        read("dense/kernel", update),
        node("dense/Mul", "Mul", "x", "dense/kernel/Read", device=forward),
        node("dense/Relu", "Relu", "dense/Mul", device=forward),
        node("mean_loss/Sub", "Sub", "dense/Relu", "x", device=forward),
        node("mean_loss/Square", "Square", "mean_loss/Sub", device=forward),
        *(
            node(f"gradient_tape/dense/Mul_{i}", "Mul", "mean_loss/Sub", "dense/Relu", device=forward)
            for i in range(10)
        ),
        node("gradient_tape/dense/Neg", "Neg", "gradient_tape/dense/Mul_9", device=forward),
        node("sgd/Mul", "Mul", "gradient_tape/dense/Neg", "gradient_tape/dense/Mul_8", device=update),
        node("sgd/Assign", "AssignSubVariableOp", "dense/kernel", "sgd/Mul", device=update, extra=_FLOAT),
    )


_FLOAT = 'attr { key: "dtype" value { type: DT_FLOAT } }'


def test_a_training_step_has_the_parts_that_a_person_would_draw() -> None:
    figure = draw(step("/gpu:0", "/cpu:0"))
    assert titles(figure) == [
        "dense/kernel (1) variable",
        "dense (3) Mul, Relu",
        "loss (2) Sub, Square",
        "gradients (11) Mul ×10, Neg",
        "update: sgd (2) AssignSubVariableOp, Mul",
    ]
    assert figure.title == "Split over CPU:0 and GPU:0: 3 copies of unknown size per step"


def test_in_few_boxes_parts_say_no_more_than_their_names() -> None:
    figure = draw(step("/gpu:0", "/cpu:0"), limit=5)
    assert titles(figure) == [
        "dense/kernel (1) ",
        "dense (3) ",
        "loss (2) ",
        "gradients (11) ",
        "update: sgd (2) ",
    ]


def test_all_copies_between_two_devices_are_one_edge_that_tells_both_ways() -> None:
    figure = draw(step("/gpu:0", "/cpu:0"))
    (edge,) = [edge for edge in figure.edges if edge.kind == "copy"]
    device = {box.id: box.group for box in figure.nodes}
    assert [device[end][-5:] for end in (edge.source, edge.target)] == ["CPU:0", "GPU:0"]
    assert (edge.from_group, edge.to_group, edge.count) == (True, True, 3)
    assert (edge.label, edge.back) == ("float32 [?] · unknown size", "2 × float32 [?] · unknown size")


@pytest.mark.parametrize("file", ["x.svg", "x.dot"])
def test_a_label_that_tells_both_ways_has_an_arrow_for_each(file: str) -> None:
    text = draw_picture(draw(step("/gpu:0", "/cpu:0")), file).decode()
    assert re.findall(r"[↓↑] [^<\n]*", text) == ["↓ float32 [?], unknown size", "↑ 2 × float32 [?], unknown size"]


def layer(name: str, device: str, source: str) -> list[str]:
    chain = [f"{name}/Mul", *(f"{name}/Neg_{i}" for i in range(6))]
    negations = (node(own, "Neg", before, device=device) for before, own in pairwise(chain))
    return [node(f"{name}/Mul", "Mul", source, source, device=device), *negations]


def test_copies_that_go_one_way_join_the_boxes_that_send_and_read_all_of_them() -> None:
    lines = [*layer("first", "/gpu:0", "x"), *layer("second", "/gpu:1", "first/Neg_5")]
    lines += layer("third", "/gpu:1", "second/Neg_5")
    figure = draw(place(constant("x", (4,), "/gpu:0"), *lines))
    label = {box.id: box.label for box in figure.nodes}
    copies = [edge for edge in figure.edges if edge.kind == "copy"]
    assert [(label[edge.source], label[edge.target], edge.from_group, edge.to_group, edge.back) for edge in copies] == [
        ("first", "second", False, False, ""),
    ]  # fmt: skip


def test_a_box_that_nothing_else_reaches_has_lines_of_its_own() -> None:
    lines = [*layer("first", "/gpu:0", "x"), *layer("second", "/gpu:1", "first/Neg_5")]
    lines += [*layer("third", "/gpu:0", "second/Neg_5"), *layer("fourth", "/gpu:0", "third/Neg_5")]
    lines += [*layer("fifth", "/gpu:1", "fourth/Neg_5"), *layer("sixth", "/gpu:1", "second/Neg_5")]
    lines += [*layer("last", "/gpu:0", "fifth/Neg_5"), *layer("lone", "/gpu:1", "last/Neg_5")]
    figure = draw(place(constant("x", (4,), "/gpu:0"), *lines))
    label = {box.id: box.label for box in figure.nodes}
    found = {(label[e.source], label[e.target]) for e in figure.edges if e.kind == "copy" and not e.from_group}
    assert found == {("first", "second"), ("second", "third"), ("fourth", "fifth"), ("fifth", "last"), ("last", "lone")}
    assert sum(edge.count for edge in figure.edges if edge.kind == "copy") == 5, "each copy is in one line"


def test_what_flows_within_a_device_is_drawn_unless_a_drawn_path_implies_it() -> None:
    figure = draw(
        place(
            constant("x", (4,), "/GPU:0"),
            *layer("first", "/GPU:0", "x"),
            *layer("second", "/GPU:1", "first/Neg_5"),
            *layer("third", "/GPU:0", "second/Neg_5"),
            node("loss/Sub", "Sub", "third/Neg_5", "x", device="/GPU:0"),
            *(
                node(f"gradient_tape/second/Mul_{i}", "Mul", "second/Neg_5", "loss/Sub", device="/GPU:1")
                for i in range(9)
            ),
        ),
        limit=8,
    )
    labels = {box.id: box.label for box in figure.nodes}
    drawn = [(labels[edge.source], labels[edge.target], edge.kind, edge.from_group) for edge in figure.edges]
    assert drawn == [
        ("first", "second", "copy", False),  # the one line that reaches the first layer
        ("loss", "gradients", "copy", True),  # both ways, so that no path by way of GPU:0 is seen
        ("second", "gradients", "data", False),
        ("third", "loss", "data", False),
    ]


def test_many_alike_devices_are_one_box() -> None:
    figure = draw(graphs.towers(8))
    assert [(group.title, group.subtitle) for group in figure.groups] == [
        ("CPU:0", "3 ops"), ("GPU:0 … GPU:7", "8 devices alike, 6 ops each"),
    ]  # fmt: skip
    assert figure.title == "The same ops on 8 GPUs: 24 copies, ≥ 4 KiB per step"


def test_two_devices_are_drawn_each(golden: Callable[[str, str], None]) -> None:
    figure = draw(graphs.towers(2, layers=8))
    assert [group.title for group in figure.groups] == ["CPU:0", "GPU:0", "GPU:1"]
    golden("overview_towers.dot", to_dot(figure))


@pytest.mark.parametrize(
    ("nodes", "title"),
    [
        ([node("b", "Neg", "a", device="/gpu:0"), node("c", "Exp", "b", device="/gpu:0")], "All on GPU:0"),
        ([node("b", "Neg", "a", device="/gpu:9")], "Split over CPU:0 and GPU:0: 1 copy, 16 B per step"),
        (
            [node("b", "Neg", "a", device="/gpu:0"), node("c", "Exp", "b", device="/gpu:1")],
            "Split over GPU:0 and GPU:1: 1 copy of unknown size per step",
        ),
    ],
)
def test_the_title_says_where_a_step_runs(nodes: list[str], title: str) -> None:
    on = "/cpu:0" if title.startswith("Split over CPU") else "/gpu:0"
    assert draw(place(constant("a", (4,), on), *nodes)).title == title


def test_devices_that_ask_each_other_whether_to_run_still_do_the_same() -> None:
    gpus = [f"/gpu:{i}" for i in range(2)]
    lines = [constant("least", (1,), "/cpu:0"), node("any", "LogicalOr", "has_0", "has_1", device="/cpu:0")]
    for i, gpu in enumerate(gpus):
        lines += [
            node(f"batch_{i}", "Placeholder", device=gpu),
            node(f"has_{i}", "Greater", f"batch_{i}", "least", device=gpu),
        ]
        lines.append(node(f"cond_{i}/Switch", "Switch", f"batch_{i}", "any", device=gpu))
        lines.append(node(f"tower_{i}/l0", "Relu", f"cond_{i}/Switch:1", device=gpu))
        lines += [node(f"tower_{i}/l{k + 1}", "Relu", f"tower_{i}/l{k}", device=gpu) for k in range(4)]
    assert draw(place(*lines)).title.startswith("The same ops on 2 GPUs: ")


def test_a_request_that_is_not_granted_is_written_on_its_part() -> None:
    figure = draw(place(*(node(f"layer/op_{i}", "Neg", f"layer/op_{i - 1}" if i else "x", device="/gpu:7")
                          for i in range(30)), constant("x", (4,))))  # fmt: skip
    assert [box.requested for box in figure.nodes if box.kind == "part" and box.label == "layer"] == ["GPU:7"]


def test_a_fetch_to_a_device_without_ops_is_told_and_not_drawn() -> None:
    chain = [node(f"layer/op_{i}", "Neg", f"layer/op_{i - 1}" if i else "x", device="/gpu:0") for i in range(30)]
    placement = place(constant("x", (4,), "/gpu:0"), *chain)
    run = ObservedRun(SessionRun((), ("layer/op_29:0",)), "model.py:7")
    figure = draw(replace(placement, program=replace(placement.program, runs=(run,))))
    assert [group.title for group in figure.groups] == ["GPU:0"]
    assert "not drawn: 1 copy where nothing else runs" in figure.caption


@pytest.mark.parametrize("limit", [4, 8])
def test_gpus_of_a_task_are_one_but_for_the_one_that_passes_on_what_all_of_them_read(limit: int) -> None:
    figure = draw(graphs.two_tasks(4), limit)
    name = {group.id: f"{group.frame[:6]} {group.title}" for group in figure.groups}
    at = {box.id: name[box.group] for box in figure.nodes}
    assert list(name.values()) == ["task 0 CPU:0", "task 0 GPU:0 … GPU:3", "task 1 GPU:0", "task 1 GPU:1 … GPU:3"]
    told = {
        f"{at[e.source]} -> {at[e.target]}: {e.label}{e.back and f', back {e.back}'}"
        for e in figure.edges
        if e.kind == "copy"
    }
    there = [
        "task 0 CPU:0 -> task 0 GPU:0 … GPU:3: 4 copies · 256 B",
        "task 0 CPU:0 -> task 1 GPU:0: float32 [16,1] · 64 B",
    ]
    ways = {f"{there[0]}, back 4 copies · unknown size", f"{there[1]}, back float32 [?] · unknown size"}
    if limit == 8:  # the CPU has two boxes, of which nothing but these lines reaches the input
        back = ("task 0 GPU:0 … GPU:3 -> task 0 CPU:0: 4 copies", "task 1 GPU:0 -> task 0 CPU:0: float32 [?]")
        ways = {*there, *(f"{one} · unknown size" for one in back)}
    assert told == ways | {
        "task 1 GPU:0 -> task 1 GPU:1 … GPU:3: 3 copies · 192 B",
        "task 1 GPU:1 … GPU:3 -> task 0 CPU:0: 3 copies · unknown size",
    }
    assert len(figure.nodes) <= limit


def test_devices_have_badges_from_three_of_a_type() -> None:
    three = [node(f"n{i}", "Neg", "a", device=f"/gpu:{i}") for i in range(3)] + [
        node("m1", "Exp", "n1", device="/gpu:1"), node("m2", "Exp", "n0", device="/gpu:2"),
    ]  # fmt: skip
    figure = draw(place(constant("a", (4,), "/cpu:0"), *three, gpus=3))
    assert [group.badge for group in figure.groups] == ["", "G0", "G1", "G2"]


def test_a_graph_that_is_refused_is_drawn_as_by_the_placement_figure() -> None:
    placement = place(constant("a", (4,)), node("b", "Neg", "a", device="/gpu:7"), soft=False)
    assert placement.refusal is not None
    assert draw(placement) == replace(placement_figure(Placed(placement)), arrangement="rows")
    assert draw(placement).title == "TensorFlow refuses world: b requests GPU:7, which is not there"
