"""Which nodes share a box."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from simplace.placement.placement import Placement
from simplace.program.known_names import tidy_path
from simplace.views.figures.boxes import group_into_boxes
from tests.views import graphs
from tests.worlds import constant, node, place

WORLDS: dict[str, Callable[[], Placement]] = {
    "empty": graphs.empty,
    "one node": lambda: place(constant("a", (2,))),
    "two towers": lambda: graphs.towers(2),
    "eight towers": lambda: graphs.towers(8, layers=6),
    "training step": lambda: graphs.training_step(100),
    "loop": graphs.loop,
    "long names": lambda: place(*(constant("long/" * 2000 + f"{'n' * 10_000}{i}", (2,)) for i in range(60))),
    "deep names": lambda: place(*(constant(f"{'a/' * 5000}_{i}x", (2,)) for i in range(60))),
    "no scopes": lambda: place(*(constant(f"word{i}x", (2,)) for i in range(100))),
    "passing on": lambda: graphs.chain(100, "Identity"),
}


def labels(placement: Placement, limit: int) -> list[str]:
    short = placement.devices.by_name
    made, _ = group_into_boxes(placement, limit)
    return [f"{short[box.device].short} {box.label} ({len(box.nodes)}) {box.detail}".rstrip() for box in made]


@pytest.mark.parametrize("limit", [4, 12, 40])
@pytest.mark.parametrize("world", WORLDS)
def test_every_node_is_in_one_box_or_left_out(world: str, limit: int) -> None:
    placement = WORLDS[world]()
    made, box_of = group_into_boxes(placement, limit)
    held = [node for box in made for node in box.nodes]
    assert len(held) == len(set(held))
    left_out = set(placement.decisions) - set(box_of)
    assert {placement.graph.ops[node] for node in left_out} <= {"NoOp", "Const"}
    for drawn, number in box_of.items():
        assert placement.device(drawn) == made[number].device
    devices = {box.device for box in made}
    assert len(made) <= max(limit, 10 if len(box_of) <= 10 else len(devices))


@pytest.mark.parametrize("world", WORLDS)
def test_boxes_are_the_same_each_time(world: str) -> None:
    assert group_into_boxes(WORLDS[world](), 12) == group_into_boxes(WORLDS[world](), 12)


def test_alike_devices_are_opened_alike() -> None:
    made, _ = group_into_boxes(graphs.towers(4, layers=8), 20)
    by_device: dict[str, list[str]] = {}
    for box in made:
        if "GPU" in box.device:
            by_device.setdefault(box.device, []).append(box.label.split("_")[0])
    assert len(by_device) == 4
    assert len({tuple(one) for one in by_device.values()}) == 1


def test_training_step_collapses_to_its_layers() -> None:
    assert labels(graphs.training_step(100), 12) == [
        "CPU:0 Const (1) x",
        "GPU:0 dense ×100 (300) model",
        "GPU:0 dense ×100 (200) gradient_tape/model",
        "GPU:0 adam (200) Mul, Sub",
    ]


def test_loose_ops_beyond_the_limit_are_put_together() -> None:
    lines = [constant("x", (2,)), *(node(f"word{i}x", "Relu", "x") for i in range(60))]
    lines += [node(f"scope/op{i}x", "Relu", "x") for i in range(9)]
    found = labels(place(*lines), 10)
    assert len(found) == 10
    assert "GPU:0 scope (9) Relu" in found
    assert "GPU:0 Relu (52)" in found


def test_a_device_of_nothing_but_arguments_says_so_where_it_is_one_box() -> None:
    lines = [
        node(f"x{i}", "_Arg", device="/cpu:0", extra=f'attr {{ key: "index" value {{ i: {i} }} }}') for i in range(3)
    ]
    lines += [node(f"layer{i}/op", ("Neg", "Relu", "Exp")[i % 3], f"x{i % 3}", device="/gpu:0") for i in range(60)]
    assert labels(place(*lines), 2) == ["CPU:0 3 arguments (3)", "GPU:0 Neg, Relu, … (60) 3 types of ops"]


def test_pass_through_chain_is_drawn_with_its_source() -> None:
    made, box_of = group_into_boxes(graphs.chain(100, "Identity"), 40)
    assert [box.label for box in made] == ["Const"]
    assert len(box_of) == 100


def test_twenty_thousand_nodes_fit_in_forty_boxes() -> None:
    assert len(group_into_boxes(graphs.chain(20_000), 40)[0]) <= 40
    assert len(group_into_boxes(graphs.chain(5_000, "Identity"), 40)[0]) == 1


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("a", ("a",)),
        ("StatefulPartitionedCall_3/dense/MatMul", ("dense", "MatMul")),
        ("while/body/_1/while/cond/then/_9/while/cond/norm/Sum", ("while", "body", "cond", "then", "norm", "Sum")),
        ("Func/replica_1/dense/input/_5", ("dense", "input")),
        ("_7", ("_7",)),
        ("", ("",)),
        ("a//b", ("a", "b")),
    ],
)
def test_scopes_that_tensorflow_adds_are_not_shown(name: str, path: tuple[str, ...]) -> None:
    assert tidy_path(name) == path
