"""Findings about copies: each where it should be, with what it costs a step, and none where all is well."""

from __future__ import annotations

import pytest

from simplace.explain.finding import StepCost
from simplace.explain.finding_lines import format_finding
from simplace.explain.placement_findings import find_in_placement, is_folded, rank_findings
from simplace.partition.copies import find_communication
from simplace.placement.placement import Placement
from simplace.program.program import NodeNotes, Resource
from simplace.views.text.finding_list import describe_findings
from tests.partition.test_collective_members import member, scalar
from tests.worlds import constant, node, place

MATRIX = (64, 64)
_INDICES = 'attr { key: "Tindices" value { type: DT_INT32 } }'
BYTES = 64 * 64 * 4
AT = {"gradient_tape/dw": NodeNotes("model.py:9"), "mm": NodeNotes("model.py:5"), "mul": NodeNotes("model.py:11")}


def found(*nodes: str, notes: dict[str, NodeNotes] | None = None, **settings: object) -> list[str]:
    """Place nodes; list the rules, nodes and copies of what is found but idle GPUs and what is harmless."""
    placement = place(*nodes, notes={**AT, **_shapes(nodes), **(notes or {})}, **settings)  # type: ignore[arg-type]
    every = find_in_placement(placement, find_communication(placement.placed))
    return [
        f"{one.rule} {' '.join(one.nodes)}: {one.cost.copies} copies, {one.cost.size} B"
        for one in every
        if one.rule != "idle-gpu" and not is_folded(one)
    ]


def lines(placement: Placement) -> list[str]:
    return describe_findings(find_in_placement(placement, find_communication(placement.placed)))


def _shapes(nodes: tuple[str, ...]) -> dict[str, NodeNotes]:
    """Give each read of a variable, and each gradient, the shape of a matrix."""
    names = [text.split('"')[1] for text in nodes]
    return {name: NodeNotes(AT.get(name, NodeNotes()).at, shapes=(MATRIX,)) for name in names}


def variable(name: str, device: str) -> tuple[str, str]:
    shape = 'attr { key: "shape" value { shape { dim { size: 64 } dim { size: 64 } } } }'
    return node(name, "VarHandleOp", device=device, extra=shape), node(f"read_{name}", "ReadVariableOp", name)


def assign(name: str, variable: str, value: str) -> str:
    return node(name, "AssignSubVariableOp", variable, value).replace('"T"', '"dtype"')


def layer(gpu: int, gradient: str = "") -> list[str]:
    """Write a product with a variable of a GPU, its gradient and its update, which ask for `gradient` or nothing."""
    return [
        *variable("w", f"/GPU:{gpu}"),
        constant("x", MATRIX, device=f"/GPU:{gpu}"),
        node("mm", "MatMul", "x", "read_w", device=f"/GPU:{gpu}"),
        node("gradient_tape/dy", "MatMul", "mm", "read_w", device=gradient),
        node("gradient_tape/dw", "MatMul", "x", "gradient_tape/dy", device=gradient),
        node("mul", "Neg", "gradient_tape/dw", device=gradient),
        assign("set", "w", "mul"),
    ]


def test_gradients_outside_of_the_scope_of_their_layer() -> None:
    assert found(*layer(1)) == [
        f"gradients-elsewhere gradient_tape/dy gradient_tape/dw: 4 copies, {4 * BYTES} B",
    ]
    placement = place(*layer(1), notes={**AT, **_shapes(tuple(layer(1)))})
    assert lines(placement)[0].startswith(
        "2 gradient ops of layers on GPU:1 and 1 of the updates after them run on GPU:0 (model.py:9) - "
        "4 copies, 64 KiB, "
    )


def test_gradients_whose_updates_read_more_on_their_own_device() -> None:
    """All updates share two tensors, which would have to be copied to the variable's device."""
    shared = [line for name in "ab" for line in (node(name, "Neg", "seed"), node(f"log_{name}", "Neg", name))]
    update = node("mul", "AddN", "gradient_tape/dw", "a", "b", extra='attr { key: "N" value { i: 3 } }')
    nodes = [update if 'name: "mul"' in one else one for one in layer(1)]
    assert found(constant("seed", MATRIX), *shared, *nodes) == [
        f"gradients-elsewhere gradient_tape/dy gradient_tape/dw: 2 copies, {2 * BYTES} B",
    ]


def test_gradients_where_their_layer_is() -> None:
    assert found(*layer(0)) == []
    assert found(*layer(1, "/GPU:1")) == []


def test_gradients_that_the_program_asks_for_elsewhere_are_its_own_choice() -> None:
    assert found(*layer(1, "/GPU:0")) == []


def test_an_update_outside_of_the_scope_of_its_variable() -> None:
    there = [one.replace('name: "mul" op: "Neg" device: "/GPU:1"', 'name: "mul" op: "Neg" device: ""') for one in
             layer(1, "/GPU:1")]  # fmt: skip
    assert found(*there) == [f"updates-elsewhere mul: 2 copies, {2 * BYTES} B"]


def slot(device: str) -> list[str]:
    """Write a layer on GPU:1 whose optimizer keeps a sum of gradients on a device, and computes where nothing asks."""
    layer_there = [one for one in layer(1, "/GPU:1") if 'name: "mul"' not in one and 'name: "set"' not in one]
    updates = [node("sum", "Add", "read_m", "gradient_tape/dw"), node("mul", "Neg", "sum")]
    return [*layer_there, *variable("m", device), *updates, assign("keep", "m", "sum"), assign("set", "w", "mul")]


def test_a_slot_of_an_optimizer_elsewhere_than_its_variable() -> None:
    assert found(*slot("/GPU:0")) == [f"slots-elsewhere m: 2 copies, {2 * BYTES} B"]
    placement = place(*slot("/GPU:0"), notes={**AT, **_shapes(tuple(slot("/GPU:0")))})
    assert lines(placement)[0].startswith("m is on GPU:0, and the variable that it is kept for on GPU:1")
    assert not any("slots" in one for one in found(*slot("/GPU:1")))


def test_a_variable_far_from_the_op_that_reads_it() -> None:
    far = [*variable("w", "/CPU:0"), constant("x", MATRIX), node("mm", "MatMul", "x", "read_w")]
    assert found(*far) == [f"variables-far mm: 1 copies, {BYTES} B"]
    placement = place(*far, notes=_shapes(tuple(far)))
    assert lines(placement)[0].startswith(
        "w is on CPU:0, and mm (MatMul) on GPU:0 reads all of it in each step (model.py:5) - 1 copy, 16 KiB, "
    )


@pytest.mark.parametrize("device", ["/CPU:0", "/GPU:0"])
def test_an_identity_of_a_variable_hands_on_what_is_far(device: str) -> None:
    product = node("mm", "MatMul", "x", "same", device="/GPU:0")
    far = [*variable("w", "/CPU:0"), node("same", "Identity", "read_w", device=device), constant("x", MATRIX), product]
    assert found(*far, notes={"same": NodeNotes(shapes=(MATRIX,))}) == [f"variables-far mm: 1 copies, {BYTES} B"]
    handle = node("h", "Identity", "w", device="/CPU:0", dtype="DT_RESOURCE")
    near = [*variable("w", "/CPU:0"), handle, node("r", "ReadVariableOp", "h"), node("n", "Neg", "r", device="/CPU:0")]
    assert found(*near) == []


def test_variables_of_replicas_of_looked_up_rows_and_of_counters_are_no_finding() -> None:
    shared = [*variable("w", "/CPU:0"), constant("x", MATRIX, device="/GPU:0"), constant("y", MATRIX, device="/GPU:1")]
    towers = [node(f"mm{i}", "MatMul", "xy"[i], "read_w", device=f"/GPU:{i}") for i in (0, 1)]
    assert found(*shared, *towers) == []
    near = [*variable("w", "/GPU:0"), constant("x", MATRIX), node("mm", "MatMul", "x", "read_w")]
    assert found(*near) == []
    counter = [*variable("w", "/CPU:0"), node("neg", "Neg", "read_w", device="/GPU:0")]
    assert found(*counter, notes={"read_w": NodeNotes(shapes=((),))}) == []


def test_a_trip_to_the_cpu_that_the_program_asks_for() -> None:
    ends = [constant("x", MATRIX), node("a", "MatMul", "x", "x"), node("b", "MatMul", "n", "n")]
    there = node("n", "Neg", "a", device="/CPU:0")
    assert found(*ends, there) == [f"host-round-trip n: 2 copies, {2 * BYTES} B"]
    assert found(*ends, there.replace("/CPU:0", "/GPU:0")) == []
    onwards = [node("n2", "Neg", "n", device="/CPU:0"), node("b", "MatMul", "n2", "n2")]
    assert found(*ends[:2], there, *onwards) == [f"host-round-trip n n2: 2 copies, {2 * BYTES} B"]
    handed_on = node("b", "Identity", "n")
    assert found(*ends[:2], there, handed_on) == []


def test_the_count_of_steps_of_tensorflow_1_is_no_update() -> None:
    home = 'attr { key: "_class" value { list { s: "loc:@step" } } } '
    cast = 'attr { key: "SrcT" value { type: DT_INT32 } }'
    count = [node("step", "VariableV2", dtype="DT_INT32", extra='attr { key: "shape" value { shape { } } }'),
             node("read_step", "Identity", "step", dtype="DT_INT32", extra=home),
             node("rate", "Cast", "read_step", device="/GPU:1", extra=cast).replace('"T"', '"DstT"')]  # fmt: skip
    two = 'attr { key: "N" value { i: 2 } }'
    update = node("mul", "AddN", "gradient_tape/dw", "rate", device="/GPU:1", extra=two)
    nodes = [update if 'name: "mul"' in one else one for one in layer(1, "/GPU:1")]
    assert found(*count, *nodes, notes={name: NodeNotes(shapes=((),)) for name in ("step", "read_step", "rate")}) == []


def test_a_single_value_that_is_given_is_no_work_of_a_gpu() -> None:
    def chain(shape: tuple[int, ...]) -> list[str]:
        given = [constant("x", shape, device="/GPU:0"), node("i", "Identity", "x", device="/GPU:0")]
        notes = {name: NodeNotes(shapes=(shape,)) for name in "xi"}
        return found(*given, node("r", "MatrixSquareRoot", "i"), node("b", "MatMul", "r", "r"), notes=notes)

    assert chain(()) == []
    assert chain(MATRIX) == [f"detour-over-cpu r: 2 copies, {2 * BYTES} B"]


def test_an_op_that_leaves_the_gpu_for_lack_of_a_kernel_costs_its_copies() -> None:
    chain = [constant("x", MATRIX), node("a", "MatMul", "x", "x"), node("r", "MatrixSquareRoot", "a"),
             node("b", "MatMul", "r", "r")]  # fmt: skip
    assert found(*chain) == [f"detour-over-cpu r: 2 copies, {2 * BYTES} B"]


def test_integers_that_leave_the_gpu_are_a_finding_only_where_they_cost() -> None:
    def chain(side: int) -> list[str]:
        shapes = {name: NodeNotes(shapes=((side, side),)) for name in "xarb"}
        product = node("r", "MatMul", "a", "a", dtype="DT_INT64")
        ends = [node(one, "Neg", of, dtype="DT_INT64", device="/GPU:0") for one, of in (("a", "x"), ("b", "r"))]
        return found(constant("x", (side, side), dtype="DT_INT64"), ends[0], product, ends[1], notes=shapes)

    assert chain(8) == []
    assert chain(2048) == [f"detour-over-cpu r: 2 copies, {2 * 8 * 2048 * 2048} B"]


def gather(rows: int) -> Placement:
    """Place two replicas that gather rows of 64 floats, and scatter them into variables of 256 rows."""
    shared = [scalar("two", 2), scalar("group", 1), scalar("key", 7)]
    nodes = list(shared)
    for i in (0, 1):
        handle = f'attr {{ key: "index" value {{ i: {i} }} }}'
        nodes += [
            node(f"v{i}", "_Arg", dtype="DT_RESOURCE", device=f"/GPU:{i}", extra=handle),
            constant(f"x{i}", (rows, 64), device=f"/GPU:{i}"),
            constant(f"at{i}", (2 * rows,), device=f"/GPU:{i}", dtype="DT_INT32"),
            member(f"g{i}", f"x{i}", i, "key", op="CollectiveGatherV2"),
            node(f"s{i}", "ResourceScatterSub", f"v{i}", f"at{i}", f"g{i}", extra=_INDICES).replace('"T"', '"dtype"'),
        ]
    return place(*nodes)


def test_rows_are_gathered_that_are_larger_than_the_variable() -> None:
    def told(rows: int) -> list[object]:
        from dataclasses import replace

        placement = gather(rows)
        known = {i: Resource(f"table{i}", f"/GPU:{i}", "", True, 1, (256, 64)) for i in (0, 1)}
        placement = replace(placement, program=replace(placement.program, resources=known))
        every = find_in_placement(placement, find_communication(placement.placed))
        return [(one.nodes, one.cost.size) for one in every if one.rule == "sparse-gather"]

    assert told(1024) == [(("g0", "g1"), 1024 * 64 * 4 - 256 * 64 * 4)]
    assert told(128) == []


def test_the_dearest_comes_first_and_what_is_harmless_shares_a_line() -> None:
    shape = node("n", "Shape", "mm", extra='attr { key: "out_type" value { type: DT_INT32 } }')
    world = [*layer(1), shape, constant("a", (2, 2)), node("y", "MatMul", "a", "a", device="/GPU:7")]
    placement = place(*world, notes={**AT, **_shapes(tuple(layer(1)))})
    every = find_in_placement(placement, find_communication(placement.placed))
    assert [one.rule for one in every] == ["gradients-elsewhere", "no-such-device", "host-memory"]
    assert every[0].cost.seconds > 0
    assert every[-1].cost == StepCost()
    assert lines(placement)[-1] == f"harmless: {format_finding(every[-1])}, see doctor/host-memory"
    assert rank_findings(reversed(every)) == every
