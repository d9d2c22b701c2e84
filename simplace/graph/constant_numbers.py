"""The numbers of a small constant of integers."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from typing import Any

from simplace.graph.dtypes import DataType
from simplace.graph.node_def import TensorInfo
from simplace.graph.protos import message_class

Numbers = int | tuple[int, ...]

_FORMATS: Mapping[DataType, tuple[str, str]] = {  # of the message's field, and of an element of its content
    DataType.DT_INT32: ("int_val", "i"), DataType.DT_INT64: ("int64_val", "q"), DataType.DT_BOOL: ("bool_val", "?"),
}  # fmt: skip


def read_numbers(tensor: TensorInfo) -> Numbers | None:
    """Return the integers of a scalar or of a vector, None for any other tensor, or one that was too large to keep.

    Those that are missing at the end are as the last one that is there (`TensorProto` of framework/tensor.proto).

    >>> read_numbers(TensorInfo(DataType.DT_INT32, (), 7)), read_numbers(TensorInfo(DataType.DT_INT32, (2,)))
    (7, None)
    """
    return read_elements(tensor) if tensor.shape is not None and len(tensor.shape) < 2 else None


def read_elements(tensor: TensorInfo) -> Numbers | None:
    """Return the integers of a tensor in a row, a scalar as itself; None for one that was too large to keep."""
    if tensor.value is not None:
        return tensor.value
    if not tensor.content or not tensor.shape or tensor.dtype not in _FORMATS:
        return None
    message: Any = message_class("TensorProto")()
    message.ParseFromString(tensor.content)
    field, letter = _FORMATS[tensor.dtype]
    count = math.prod(tensor.shape)
    if message.tensor_content:
        if len(message.tensor_content) != count * struct.calcsize(letter):
            return None
        return tuple(map(int, struct.unpack(f"<{count}{letter}", message.tensor_content)))
    values = [int(value) for value in getattr(message, field)][:count]
    return (*values, *[values[-1] if values else 0] * (count - len(values)))
