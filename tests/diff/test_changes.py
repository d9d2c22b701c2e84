"""What moved between two placements, and which node it follows."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from simplace.analysis.step_times import step_times
from simplace.api import Diff
from simplace.changes.placement_changes import ProgramChanges, compare_programs
from simplace.changes.what_if import read_pin, suppose_changes
from simplace.errors import DeviceSpecError, NodeNotFoundError, SimplaceError
from simplace.executor.step_options import StepOptions
from simplace.exports.change_report import report_changes
from simplace.placement.placement import Placement
from simplace.result import Placed, Result
from simplace.views.text.change_summary import change_summary
from tests.views import graphs
from tests.worlds import GPU0, GPU1, constant, node, place, places


def result(*placements: Placement, target: str = "world.pbtxt") -> Result:
    devices = placements[0].devices
    return Result(target, "2.21.0", "shipped", devices, tuple(map(Placed, placements)), unchecked="nobody asked it")


def with_variable(device: str = "/gpu:0", gpus: int = 2) -> Placement:
    """Place a variable with its read, an identity after the read, and one op that has its own request."""
    resource = 'attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape { } } }'
    return place(
        f'node {{ name: "v" op: "VarHandleOp" device: "{device}" {resource} }}',
        'node { name: "read" op: "ReadVariableOp" input: "v" attr { key: "dtype" value { type: DT_FLOAT } } }',
        node("same", "Identity", "read"),
        node("use", "Neg", "same"),
        node("other", "Exp", "use", device="/gpu:1"),
        gpus=gpus,
    )


def with_pins(placement: Placement, *pins: str) -> Diff:
    before = result(placement)
    return Diff(before, suppose_changes(before, [read_pin(text) for text in pins]))


def only(changes: Diff) -> ProgramChanges:
    (change,) = changes.programs
    return change


def test_nothing_moves_without_a_change() -> None:
    changes = Diff(result(with_variable()), result(with_variable()))
    assert not changes.differs
    assert only(changes).compared == 5
    assert only(changes).causes == ()


def test_what_follows_a_moved_variable_is_traced_to_it() -> None:
    change = only(with_pins(with_variable(), "v=GPU:1"))
    assert [(move.name, move.root, move.how) for move in change.moves] == [
        ("read", "v", "colocation"), ("same", "v", "propagation"), ("v", "v", ""),
    ]  # fmt: skip
    (cause,) = change.causes
    assert (cause.given, [move.name for move in cause.roots], cause.moves) == ("request", ["v"], 3)
    assert (change.moves[0].source, change.moves[0].target) == (GPU0, GPU1)


def test_copies_come_and_go_with_the_move() -> None:
    change = only(with_pins(with_variable(), "use=GPU:1"))
    assert [(copy.tensor, copy.target) for copy in change.copies_lost] == [("use:0", GPU1)]
    assert [(copy.tensor, copy.target) for copy in change.copies_gained] == [("same:0", GPU1)]


def test_a_device_that_is_gone_moves_what_asked_for_it() -> None:
    change = compare_programs(Placed(with_variable()), Placed(with_variable(gpus=1)))
    (cause,) = change.causes
    assert (cause.given, [move.name for move in cause.roots]) == ("device gone", ["other"])


def test_nodes_of_one_side_are_named() -> None:
    lines = [constant("a", (2,)), node("b", "Neg", "a")]
    change = compare_programs(Placed(place(*lines)), Placed(place(lines[0], node("c", "Neg", "a"))))
    assert (change.only_before, change.only_after, change.compared) == (("b",), ("c",), 1)


def test_a_refusal_is_a_difference_and_no_lost_nodes() -> None:
    lines = [constant("a", (2,), "/gpu:7"), node("b", "Neg", "a")]
    change = compare_programs(Placed(place(*lines)), Placed(place(*lines, soft=False)))
    assert change.differs
    assert (change.refusals, change.only_before) == (("", "INVALID_ARGUMENT"), ())
    assert "refuses to place it" in step_times(change.before.placement, change.after.placement, StepOptions()).without


def test_programs_are_matched_by_name_and_order() -> None:
    one, two = place(constant("a", (2,)), name="one"), place(constant("a", (2,)), name="two")
    changes = Diff(result(one, one, two), result(two, one))
    assert [change.name for change in changes.programs] == ["one", "two"]
    assert [placed.name for placed in changes.only_before] == ["one"]


def test_two_files_of_one_program_are_compared_whatever_their_names() -> None:
    one, two = place(constant("a", (2,)), name="one"), place(constant("a", (2,), "/cpu:0"), name="two")
    assert [move.name for move in only(Diff(result(one), result(two))).moves] == ["a"]


def test_many_nodes_that_move_alike_are_one_cause() -> None:
    changes = with_pins(graphs.towers(2), "tower/*=gpu:1")
    (cause,) = only(changes).causes
    assert [move.name for move in cause.roots] == [
        "tower/dense_0/MatMul", "tower/dense_0/Relu", "tower/dense_1/MatMul", "tower/dense_1/Relu",
    ]  # fmt: skip


@pytest.mark.parametrize("pins", [("v=GPU:1",), ("tower*=CPU", "*/Relu=/gpu:1")], ids=["variable", "later wins"])
def test_text_is_the_golden_text(pins: tuple[str, ...], golden: Callable[[str, str], None]) -> None:
    placement = with_variable() if pins[0].startswith("v") else graphs.towers(2)
    changes = with_pins(placement, *pins)
    times = changes.step_times(costs="flat")
    golden(f"{'variable' if len(pins) == 1 else 'towers'}.txt", change_summary(changes, times) + "\n")


def test_report_says_the_same_as_the_records() -> None:
    changes = with_pins(with_variable(), "v=GPU:1")
    written = report_changes(changes, changes.step_times(costs="flat"))
    assert written["schema"] == "simplace/diff/1"
    assert written["differs"] is True
    assert written["after"]["checked"] is False
    (program,) = written["programs"]
    assert [(move["name"], move["follows_by"], move["after"]["rule"]) for move in program["moves"]] == [
        ("read", "colocation", "colocated"), ("same", "propagation", "identity_follows_input"),
        ("v", None, "requested"),
    ]  # fmt: skip
    assert program["causes"][0]["by_propagation"] == ["same"]
    assert set(program["step"]) == {"before", "after", "errors", "costs"}


def test_a_pin_is_a_request_like_any_other() -> None:
    pinned = suppose_changes(result(with_variable()), [read_pin("v=gpu:1")]).programs[0].placement
    assert places(pinned) == places(with_variable("/gpu:1"))


def test_a_pin_of_the_end_of_a_name_is_that_node_s() -> None:
    changes = with_pins(graphs.towers(1), "dense_1/Relu=CPU:0")
    assert [move.name for move in only(changes).moves] == ["tower/dense_1/Relu"]


def test_a_type_alone_keeps_no_number_of_the_old_request() -> None:
    assert (
        places(suppose_changes(result(with_variable("/gpu:1")), [read_pin("v=CPU")]).programs[0].placement)["v"]
        == "CPU:0"
    )


@pytest.mark.parametrize(
    ("pin", "error", "said"),
    [
        ("dense", SimplaceError, "write NODE=DEVICE"),
        ("v=", SimplaceError, "write NODE=DEVICE"),
        ("v=gpu1", DeviceSpecError, "cannot read the device of the pin 'v=gpu1'"),
        ("reed=gpu:1", NodeNotFoundError, "did you mean read?"),
        ("w*=gpu:1", NodeNotFoundError, "no node matches the pattern 'w*'"),
    ],
)
def test_a_pin_that_cannot_be_is_refused(pin: str, error: type[SimplaceError], said: str) -> None:
    with pytest.raises(error) as caught:
        with_pins(with_variable(), pin)
    assert said in str(caught.value)
