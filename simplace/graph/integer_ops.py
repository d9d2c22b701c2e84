"""What ops make of small integers: of the counters of loops, the sizes of tensors, and the lengths of lists.

As tensorflow/core/common_runtime/eval_const_tensor.cc finds them for shape inference, and further. A bool is 0 or 1,
and a TensorList stands for the number of its elements (tensorflow/core/kernels/list_kernels.cc).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from typing import Any

from simplace.graph.dtypes import DataType
from simplace.graph.op_kinds import ENTERS, IDENTITIES, NEXT_ITERATIONS, SWITCHES

Value = int | tuple[int | None, ...] | None  # a scalar, a vector, or not known
Rule = Callable[[Sequence[Value], Mapping[str, Any], int], Value]  # of the inputs, the attributes, and which output

_INTEGERS = frozenset((DataType.DT_INT32, DataType.DT_INT64, DataType.DT_BOOL))
_MOST_INT32, _MOST_INT64 = 1 << 31, 1 << 63
_LONGEST = 64  # elements of a vector that is followed: in a loop one may double with each round
WHOLE = _INTEGERS | {DataType.DT_VARIANT}  # the types of tensors that are followed


def multiply(sizes: Sequence[int | None]) -> int | None:
    """Return the product of numbers, None where one is not known.

    >>> multiply((2, 3)), multiply((2, None)), multiply(())
    (6, None, 1)
    """
    known = [size for size in sizes if size is not None]
    return prod(known) if len(known) == len(sizes) else None


def _compute(compute: Callable[..., int | None], inputs: Sequence[Value], attrs: Mapping[str, Any], slot: int) -> Value:
    """Return what a function makes of scalars, None where one is not known, or the result is too large for its type."""
    found = compute(*inputs) if all(isinstance(each, int) for each in inputs) else None
    limit = _MOST_INT32 if attrs.get("T") == DataType.DT_INT32 else _MOST_INT64
    return found if found is not None and -limit <= found < limit else None


def _pass_on(inputs: Sequence[Value], attrs: Mapping[str, Any], slot: int) -> Value:
    return inputs[0] if inputs else None


def _and(inputs: Sequence[Value], attrs: Mapping[str, Any], slot: int) -> Value:
    return 0 if 0 in inputs else None if None in inputs else 1


def _or(inputs: Sequence[Value], attrs: Mapping[str, Any], slot: int) -> Value:
    return 1 if 1 in inputs else None if None in inputs else 0


def _select(inputs: Sequence[Value], attrs: Mapping[str, Any], slot: int) -> Value:
    chosen, yes, no = inputs
    if isinstance(chosen, int):
        return yes if chosen else no
    return yes if yes == no else None


def _cast(inputs: Sequence[Value], attrs: Mapping[str, Any], slot: int) -> Value:
    if attrs.get("DstT") not in _INTEGERS:
        return None
    is_truth = attrs.get("DstT") == DataType.DT_BOOL and isinstance(inputs[0], int)
    return int(inputs[0] != 0) if is_truth else inputs[0]


def _pack(inputs: Sequence[Value], attrs: Mapping[str, Any], slot: int) -> Value:
    return tuple(each if isinstance(each, int) else None for each in inputs) if len(inputs) <= _LONGEST else None


def _unpack(inputs: Sequence[Value], attrs: Mapping[str, Any], slot: int) -> Value:
    return _get(inputs[0], slot)


def _gather(inputs: Sequence[Value], attrs: Mapping[str, Any], slot: int) -> Value:
    place = inputs[1]
    return _get(inputs[0], place) if isinstance(place, int) and place >= 0 else None


def _slice(inputs: Sequence[Value], attrs: Mapping[str, Any], slot: int) -> Value:
    """Return the element that x[i] takes of a vector, or those that x[i:j:k] does."""
    vector, *bounds = inputs
    rows = [bound[0] for bound in bounds if isinstance(bound, tuple) and len(bound) == 1 and bound[0] is not None]
    if not isinstance(vector, tuple) or len(rows) != 3 or attrs.get("new_axis_mask") or attrs.get("ellipsis_mask"):
        return None
    begin, end, step = rows
    if attrs.get("shrink_axis_mask") == 1:
        return _get(vector, begin)
    first, last = None if attrs.get("begin_mask") else begin, None if attrs.get("end_mask") else end
    return vector[slice(first, last, step)] if step else None


def _concat(inputs: Sequence[Value], attrs: Mapping[str, Any], slot: int) -> Value:
    vectors = [each for each in inputs[:-1] if isinstance(each, tuple)]
    is_known = len(vectors) == len(inputs) - 1 and sum(map(len, vectors)) <= _LONGEST
    return tuple(one for each in vectors for one in each) if is_known else None


def _get(vector: Value, place: int) -> int | None:
    return vector[place] if isinstance(vector, tuple) and -len(vector) <= place < len(vector) else None


def _reduce(reduce: Callable[..., int | None], inputs: Sequence[Value], attrs: Mapping[str, Any], slot: int) -> Value:
    """Return what the elements of a vector are reduced to; of a scalar, or without axes, nothing is reduced."""
    vector, axes = inputs[:2]
    if not isinstance(vector, tuple) or axes == ():
        return vector
    known = [each for each in vector if each is not None]
    return reduce(known) if len(known) == len(vector) and not attrs.get("keep_dims") else None


def _fill(value: int, inputs: Sequence[Value], attrs: Mapping[str, Any], slot: int) -> Value:
    """Return a number like another one; a list of zeros is as long as that it is like."""
    if attrs.get("T") == DataType.DT_VARIANT:
        return inputs[0]
    return value if isinstance(inputs[0], int) else None


def _set(inputs: Sequence[Value], attrs: Mapping[str, Any], slot: int) -> Value:
    """Return how long a list is into which an element was put."""
    length, place = inputs[:2]
    if not attrs.get("resize_if_index_out_of_bounds"):
        return length
    return max(length, place + 1) if isinstance(length, int) and isinstance(place, int) else None


def _pop(inputs: Sequence[Value], attrs: Mapping[str, Any], slot: int) -> Value:
    return inputs[0] - 1 if isinstance(inputs[0], int) and slot == 0 else None


def _take_second(inputs: Sequence[Value], attrs: Mapping[str, Any], slot: int) -> Value:
    return inputs[1]


def _push(inputs: Sequence[Value], attrs: Mapping[str, Any], slot: int) -> Value:
    return inputs[0] + 1 if isinstance(inputs[0], int) else None


def _divide(left: int, right: int) -> int | None:
    return left // right if right else None


def _find_remainder(left: int, right: int) -> int | None:
    return left % right if right else None


_OF_SCALARS: Mapping[str, Callable[..., int | None]] = {
    "Add": operator.add, "AddV2": operator.add, "Sub": operator.sub, "Mul": operator.mul, "Neg": operator.neg,
    "Abs": abs, "Square": lambda x: x * x, "FloorDiv": _divide, "FloorMod": _find_remainder,
    "Maximum": max, "Minimum": min,
    "Less": operator.lt, "LessEqual": operator.le, "Greater": operator.gt, "GreaterEqual": operator.ge,
    "Equal": operator.eq, "NotEqual": operator.ne, "LogicalNot": operator.not_,
}  # fmt: skip

_OF_VECTORS: Mapping[str, Callable[..., int | None]] = {
    "Max": partial(max, default=None), "Min": partial(min, default=None), "Sum": sum, "Prod": prod,
}  # fmt: skip

PASS_ON: Rule = _pass_on
INTEGER_OPS: Mapping[str, Rule] = {
    **{op: partial(_compute, compute) for op, compute in _OF_SCALARS.items()},
    **dict.fromkeys(IDENTITIES | ENTERS | SWITCHES | NEXT_ITERATIONS, _pass_on),
    **dict.fromkeys(("StopGradient", "PreventGradient"), _pass_on),
    "LogicalAnd": _and, "LogicalOr": _or, "Select": _select, "SelectV2": _select, "Cast": _cast,
    "ZerosLike": partial(_fill, 0), "OnesLike": partial(_fill, 1),
    "Pack": _pack, "Unpack": _unpack, "StridedSlice": _slice, "GatherV2": _gather, "ConcatV2": _concat,
    **{op: partial(_reduce, reduce) for op, reduce in _OF_VECTORS.items()},
    "EmptyTensorList": lambda inputs, attrs, slot: 0,
    "TensorListReserve": _take_second, "TensorListResize": _take_second, "TensorListLength": _pass_on,
    "TensorListSetItem": _set, "TensorListPushBack": _push, "TensorListPopBack": _pop,
}  # fmt: skip
