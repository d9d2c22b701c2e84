"""What is known of a list of tensors: the shape that all its elements have, and how many there are.

Mirrors the shape functions of tensorflow/core/ops/list_ops.cc, which lose it where a branch, a loop or a call is a
function of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from simplace.oracle.child.tf_private import tensor_util


@dataclass(frozen=True, slots=True)
class ListShape:
    """Record of a list: its elements' TensorShape, None as long as there is none; `count` None: any number of them."""

    element: Any
    count: int | None = None


STACK = "TensorListStack"
ANY_LIST = ListShape(tf.TensorShape(None))
# What is known of a tensor: a ListShape for a variant, the TensorSpec of the value for a variable's handle, else its
# TensorShape.
Given = Any


def agree(shapes: Sequence[Given]) -> Given:
    """Return what tensors have in common; a list without elements is one of any elements."""
    if not all(isinstance(shape, ListShape) for shape in shapes):
        return _agree_shapes(shapes)
    elements = [shape.element for shape in shapes if shape.element is not None]
    counts = {shape.count for shape in shapes}
    return ListShape(_agree_shapes(elements) if elements else None, counts.pop() if len(counts) == 1 else None)


def follow_lists(op: Any, given: Sequence[Given]) -> list[Given]:
    """Return what is known of the outputs of one of `LIST_OPS`, [] where it is not about lists."""
    if op.type in _HANDING_ON and not any(isinstance(each, ListShape) for each in given):
        return []
    return _RULES[op.type](op, given)


def _agree_shapes(shapes: Sequence[Given]) -> Given:
    first = shapes[0]
    if isinstance(first, tf.TensorSpec):
        return first if all(each == first for each in shapes) else tf.TensorShape([])
    for each in shapes[1:]:
        first = first.most_specific_compatible_shape(each)
    return first


def _put(given: ListShape, item: Given, added: int) -> ListShape:
    count = None if given.count is None else given.count + added
    return ListShape(agree([given, ListShape(_shape_of(item))]).element, count)


def _shape_of(given: Given) -> Any:
    """Return the shape of a tensor; nothing is known of the shape of one that holds lists, ragged rows or handles."""
    return given if isinstance(given, tf.TensorShape) else tf.TensorShape(None)


def _take(given: ListShape) -> Any:
    """Return the shape of an element that is read."""
    return tf.TensorShape(None) if given.element is None else given.element


def _push(op: Any, given: Sequence[Given]) -> list[Given]:
    return [_put(given[0], given[1], 1)]


def _pop(op: Any, given: Sequence[Given]) -> list[Given]:
    count = given[0].count
    return [ListShape(given[0].element, count - 1 if count else None), _take(given[0])]


def _set(op: Any, given: Sequence[Given]) -> list[Given]:
    put = _put(given[0], given[2], 0)
    if not op.get_attr("resize_if_index_out_of_bounds"):
        return [put]
    place = _size(op.inputs[1])
    return [ListShape(put.element, None if put.count is None or place is None else max(put.count, place + 1))]


def _stack(op: Any, given: Sequence[Given]) -> list[Given]:
    element, known = _take(given[0]), op.outputs[0].shape
    if element.rank is None and known.rank:
        element = known[1:]
    return [tf.TensorShape(None) if element.rank is None else tf.TensorShape([given[0].count]).concatenate(element)]


def _unstack(op: Any, given: Sequence[Given]) -> list[Given]:
    shape = _shape_of(given[0])
    return [ListShape(shape[1:], shape[0]) if shape.rank else ANY_LIST]


def _size(tensor: Any) -> int | None:
    value = tensor_util.try_evaluate_constant(tensor)
    return None if value is None or value.ndim or value < 0 else int(value)


_RULES: Mapping[str, Callable[[Any, Sequence[Given]], list[Given]]] = {
    "EmptyTensorList": lambda op, given: [ListShape(None, 0)],
    "TensorListReserve": lambda op, given: [ListShape(None, _size(op.inputs[1]))],
    "TensorListFromTensor": _unstack,
    "TensorListPushBack": _push,
    "TensorListPopBack": _pop,
    "TensorListSetItem": _set,
    "TensorListGetItem": lambda op, given: [_take(given[0])],
    STACK: _stack,
    "TensorListResize": lambda op, given: [ListShape(given[0].element, _size(op.inputs[1]))],
    "AddN": lambda op, given: [agree(given)],
    **dict.fromkeys(("Identity", "IdentityN", "StopGradient", "ZerosLike"), lambda op, given: list(given)),
}
_HANDING_ON = frozenset({"AddN", "Identity", "IdentityN", "StopGradient", "ZerosLike"})  # numbers as well as lists
LIST_OPS = frozenset(_RULES)
