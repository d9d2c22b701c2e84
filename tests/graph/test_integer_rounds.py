"""Loops on small integers: how many rounds there are, and what is known after them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplace.graph.constant_numbers import read_numbers
from simplace.graph.dtypes import DataType
from simplace.graph.integer_ops import INTEGER_OPS, Value
from simplace.graph.integer_rounds import IntegerStep, Rounds
from simplace.graph.node_def import TensorInfo
from simplace.graph.protos import message_class


def compute(op: str, *inputs: Value, slot: int = 0, **attrs: Any) -> Value:
    return INTEGER_OPS[op](inputs, attrs, slot)


def count_up(limit: Value, step: Value, *, other: Value = 1) -> Rounds[str]:
    """Return a loop of `i` that ends at a limit, and of another condition."""
    steps = [
        IntegerStep("is less", INTEGER_OPS["Less"], ["i", "limit"], {}),
        IntegerStep("sum", INTEGER_OPS["AddV2"], ["i", "step"], {}),
        IntegerStep("longer", INTEGER_OPS["TensorListPushBack"], ["list", "i"], {}),
    ]
    known: Mapping[str, Value] = {"limit": limit, "step": step, "other": other}
    return Rounds(steps, known, {"i": 0, "list": 2}, {"i": "sum", "list": "longer"})


@pytest.mark.parametrize(
    ("loop", "counted"),
    [
        (count_up(7, 2), (4, True)),
        (count_up(0, 1), (0, True)),
        (count_up(7, 2, other=None), (4, False)),  # which may end it earlier
        (count_up(None, 1, other=None), None),  # nothing is known
        (count_up(7, None), None),
        (count_up(7, 0), None),  # for ever
    ],
)
def test_rounds_are_counted(loop: Rounds[str], counted: tuple[int, bool] | None) -> None:
    assert loop.count_rounds(["is less", "other"]) == counted


def test_a_loop_of_many_rounds_is_not_run_though_the_data_may_end_it() -> None:
    assert count_up(10**12, 1, other=None).count_rounds(["is less", "other"]) == (10**12, False)
    assert count_up(10**12, 1).count_rounds(["is less", "other"]) == (10**12, True)
    assert count_up(10**12, 1).find_values(10**12) == {"i": 10**12, "list": None}
    assert count_up(10**12, 0, other=None).count_rounds(["is less", "other"]) is None  # for ever


def test_what_is_known_after_some_rounds() -> None:
    assert count_up(7, 2).find_values(4) == {"i": 8, "list": 6}
    assert count_up(7, None).find_values(4) == {"i": None, "list": 6}


@pytest.mark.parametrize(
    ("found", "value"),
    [
        (compute("FloorDiv", -7, 2), -4),
        (compute("FloorDiv", 7, 0), None),  # the step fails there
        (compute("FloorMod", -7, 3), 2),
        (compute("Mul", 1 << 20, 1 << 20, T=DataType.DT_INT32), None),  # what TensorFlow computes is another number
        (compute("Mul", 1 << 20, 1 << 20, T=DataType.DT_INT64), 1 << 40),
        (compute("Square", 1 << 40, T=DataType.DT_INT64), None),
        (compute("ConcatV2", (1,) * 40, (1,) * 40, 0), None),  # too long to be followed
        (compute("LogicalAnd", 0, None), 0),
        (compute("LogicalAnd", 1, None), None),
        (compute("LogicalOr", None, 1), 1),
        (compute("SelectV2", 1, 3, None), 3),
        (compute("SelectV2", None, 3, 3), 3),
        (compute("StridedSlice", (4, None, 6), (-1,), (0,), (1,), shrink_axis_mask=1), 6),
        (compute("StridedSlice", (4, None, 6), (1,), (2,), (1,), shrink_axis_mask=1), None),
        (compute("StridedSlice", (4, 5, 6), (1,), (3,), (1,)), (5, 6)),
        (compute("StridedSlice", (4, 5, 6), (0,), (-1,), (1,), begin_mask=1), (4, 5)),
        (compute("StridedSlice", (4, 5, 6), (None,), (3,), (1,)), None),
        (compute("ConcatV2", (4, None), (6,), 0), (4, None, 6)),
        (compute("ConcatV2", (4, 5), None, 0), None),
        (compute("Unpack", (4, 5), slot=1), 5),
        (compute("GatherV2", (4, 5), 1, 0), 5),
        (compute("Prod", (4, 5), (0,)), 20),
        (compute("Prod", (4, None), (0,)), None),
        (compute("Max", 5, None), 5),  # Keras's layers ask for the largest of one length
        (compute("Max", (4, 6), (0,)), 6),
        (compute("Sum", (4, 6), ()), (4, 6)),
        (compute("Min", (4, 6), (0,), keep_dims=True), None),
        (compute("Cast", 3, DstT=DataType.DT_FLOAT), None),
        (compute("Cast", 3, DstT=DataType.DT_BOOL), 1),
        (compute("ZerosLike", 3, T=DataType.DT_INT32), 0),
        (compute("ZerosLike", 3, T=DataType.DT_VARIANT), 3),  # a list of as many
        (compute("TensorListSetItem", 3, 7, None), 3),
        (compute("TensorListSetItem", 3, 7, None, resize_if_index_out_of_bounds=True), 8),
        (compute("TensorListPopBack", 3, None), 2),
    ],
)
def test_what_ops_make_of_integers(found: Value, value: Value) -> None:
    assert found == value


def make_constant(dtype: DataType, values: list[int], size: int, content: bytes = b"") -> TensorInfo:
    message = message_class("TensorProto")()
    message.dtype = int(dtype)
    message.tensor_shape.dim.add().size = size
    message.int_val.extend(values)
    message.tensor_content = content
    return TensorInfo(dtype, (size,), None, message.SerializeToString())


@pytest.mark.parametrize(
    ("tensor", "numbers"),
    [
        (TensorInfo(DataType.DT_INT32, (), 7), 7),
        (make_constant(DataType.DT_INT32, [3], 1), (3,)),
        (make_constant(DataType.DT_INT32, [3, 4], 4), (3, 4, 4, 4)),
        (make_constant(DataType.DT_INT32, [], 2), (0, 0)),
        (make_constant(DataType.DT_INT64, [], 2, b"\xff" * 8 + b"\x05" + b"\0" * 7), (-1, 5)),
        (make_constant(DataType.DT_INT64, [], 2, b"\xff" * 8), None),  # damaged
        (make_constant(DataType.DT_FLOAT, [], 2), None),
        (TensorInfo(DataType.DT_INT32, (5000,)), None),  # too large to keep
    ],
)
def test_numbers_of_constants(tensor: TensorInfo, numbers: int | tuple[int, ...] | None) -> None:
    assert read_numbers(tensor) == numbers


@given(
    start=st.integers(-20, 20), limit=st.integers(-20, 20), step=st.integers(-3, 3),
    op=st.sampled_from(["Less", "LessEqual", "Greater", "GreaterEqual"]), adds=st.sampled_from(["AddV2", "Sub"]),
    turned=st.booleans(),
)  # fmt: skip
def test_counters_are_counted_as_if_their_rounds_ran(
    start: int, limit: int, step: int, op: str, adds: str, *, turned: bool
) -> None:
    sides = ["limit", "name of i"] if turned else ["name of i", "limit"]
    steps = [
        IntegerStep("name of i", INTEGER_OPS["Identity"], ["i"], {}),
        IntegerStep("is true", INTEGER_OPS[op], sides, {}),
        IntegerStep("sum", INTEGER_OPS[adds], ["name of i", "step"], {}),
    ]
    known: Mapping[str, Value] = {"limit": limit, "step": step}
    loop = Rounds(steps, known, {"i": start}, {"i": "sum"})
    truth = next((done for done, values in zip(range(200), loop.run(), strict=False) if not values["is true"]), None)
    assert loop.count_rounds(["is true"]) == (None if truth is None else (truth, True))
    rounds = truth or 5
    assert loop.find_values(rounds) == {"i": start + rounds * (step if adds == "AddV2" else -step)}
