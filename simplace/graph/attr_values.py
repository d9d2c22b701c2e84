"""Attribute values of a placed graph written back as TensorFlow's protobuf messages.

simplace keeps of a large constant, or one of strings, its type and its shape, so it is written without its content:
TensorFlow reads it as zeros or empty strings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simplace.graph.dtypes import DataType
from simplace.graph.node_def import AttrValue, FuncRef, Shape, ShapeAttr, TensorInfo

_INTEGERS = {DataType.DT_INT32: "int_val", DataType.DT_INT64: "int64_val", DataType.DT_BOOL: "bool_val"}


def write_attrs(target: Any, attrs: Mapping[str, AttrValue]) -> None:
    """Fill a map of `AttrValue` messages; a value that is not set stays out."""
    for key, value in attrs.items():
        if value is not None:
            write_value(target[key], value)


def write_value(message: Any, value: AttrValue) -> None:
    """Fill one `AttrValue` message.

    >>> from simplace.graph.protos import message_class
    >>> written = message_class("AttrValue")()
    >>> write_value(written, (DataType.DT_FLOAT, DataType.DT_INT32))
    >>> list(written.list.type)
    [1, 3]
    """
    match value:
        case tuple():
            message.list.SetInParent()
            for item in value:
                _append_item(message.list, item)
        case DataType():
            message.type = int(value)
        case bool():
            message.b = value
        case bytes():
            message.s = value
        case int():
            message.i = value
        case float():
            message.f = value
        case str():
            message.placeholder = value
        case ShapeAttr():
            _write_shape(message.shape, value.dims)
        case TensorInfo():
            _write_tensor(message.tensor, value)
        case FuncRef():
            _write_function(message.func, value)
        case _:
            raise AssertionError(f"node_def.py knows no attribute value of type {type(value).__name__}")


def _append_item(message: Any, item: AttrValue) -> None:
    match item:
        case DataType():
            message.type.append(int(item))
        case bool():
            message.b.append(item)
        case bytes():
            message.s.append(item)
        case int():
            message.i.append(item)
        case float():
            message.f.append(item)
        case ShapeAttr():
            _write_shape(message.shape.add(), item.dims)
        case TensorInfo():
            _write_tensor(message.tensor.add(), item)
        case FuncRef():
            _write_function(message.func.add(), item)
        case _:
            raise AssertionError(f"node_def.py knows no list of {type(item).__name__}")


def _write_shape(message: Any, dims: Shape) -> None:
    message.SetInParent()
    if dims is None:
        message.unknown_rank = True
        return
    for size in dims:
        message.dim.add().size = size


def _write_tensor(message: Any, tensor: TensorInfo) -> None:
    if tensor.content:
        message.ParseFromString(tensor.content)
        return
    message.dtype = int(tensor.dtype)
    _write_shape(message.tensor_shape, tensor.shape)
    if tensor.value is not None and tensor.dtype in _INTEGERS:
        getattr(message, _INTEGERS[tensor.dtype]).append(tensor.value)


def _write_function(message: Any, function: FuncRef) -> None:
    message.name = function.name
    write_attrs(message.attr, function.attrs)
