"""TensorFlow's data types: numbers, names and sizes (tensorflow/core/framework/types.proto)."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from functools import cache
from math import prod

REF_OFFSET = 100  # types.proto: DT_X_REF = DT_X + 100


class DataType(IntEnum):
    """Number a tensor's element type as `types.proto` does; a reference type is its base plus 100."""

    DT_INVALID = 0
    DT_FLOAT = 1
    DT_DOUBLE = 2
    DT_INT32 = 3
    DT_UINT8 = 4
    DT_INT16 = 5
    DT_INT8 = 6
    DT_STRING = 7
    DT_COMPLEX64 = 8
    DT_INT64 = 9
    DT_BOOL = 10
    DT_QINT8 = 11
    DT_QUINT8 = 12
    DT_QINT32 = 13
    DT_BFLOAT16 = 14
    DT_QINT16 = 15
    DT_QUINT16 = 16
    DT_UINT16 = 17
    DT_COMPLEX128 = 18
    DT_HALF = 19
    DT_RESOURCE = 20
    DT_VARIANT = 21
    DT_UINT32 = 22
    DT_UINT64 = 23
    DT_FLOAT8_E5M2 = 24
    DT_FLOAT8_E4M3FN = 25
    DT_FLOAT8_E4M3FNUZ = 26
    DT_FLOAT8_E4M3B11FNUZ = 27
    DT_FLOAT8_E5M2FNUZ = 28
    DT_INT4 = 29
    DT_UINT4 = 30
    DT_INT2 = 31
    DT_UINT2 = 32
    DT_FLOAT4_E2M1FN = 33


class TypeNumber(int):
    """Record of the number of a type that is no plain `DataType`: a reference, or one that is not known."""


_PUBLIC_NAMES = {"half": "float16", "float": "float32", "double": "float64"}
_SIZES = {
    1: 4, 2: 8, 3: 4, 4: 1, 5: 2, 6: 1, 8: 8, 9: 8, 10: 1, 11: 1, 12: 1, 13: 4, 14: 2, 15: 2, 16: 2, 17: 2,
    18: 16, 19: 2, 22: 4, 23: 8, 24: 1, 25: 1, 26: 1, 27: 1, 28: 1, 29: 1, 30: 1, 31: 1, 32: 1, 33: 1,
}  # fmt: skip


def is_ref(dtype: int) -> bool:
    """Return whether `dtype` is a reference type.

    >>> is_ref(101), is_ref(1)
    (True, False)
    """
    return dtype > REF_OFFSET


def base_type(dtype: int) -> int:
    """Strip the reference from `dtype`.

    >>> base_type(103)
    3
    """
    return dtype - REF_OFFSET if dtype > REF_OFFSET else dtype


@cache
def format_dtype(dtype: int) -> str:
    """Name `dtype` as users write it.

    >>> format_dtype(1), format_dtype(119), format_dtype(20)
    ('float32', 'float16_ref', 'resource')
    """
    plain = _format_base_type(dtype)
    return _PUBLIC_NAMES.get(plain, plain) + ("_ref" if is_ref(dtype) else "")


def name_in_messages(dtype: int) -> str:
    """Name `dtype` as TensorFlow's own messages do (DataTypeString of framework/types.cc).

    >>> name_in_messages(1), name_in_messages(119), name_in_messages(20)
    ('float', 'half_ref', 'resource')
    """
    number = base_type(dtype)
    plain = _format_base_type(number) if number in DataType._value2member_map_ else f"unknown dtype enum ({number})"
    return ("INVALID" if number == 0 else plain) + ("_ref" if is_ref(dtype) else "")


def _format_base_type(dtype: int) -> str:
    try:
        return DataType(base_type(dtype)).name[3:].lower()
    except ValueError:
        return f"dtype{base_type(dtype)}"


def parse_dtype(text: str) -> DataType:
    """Read a type name in any of its spellings; raise `ValueError` for others.

    >>> parse_dtype("float"), parse_dtype("DT_INT64"), parse_dtype("float16")
    (<DataType.DT_FLOAT: 1>, <DataType.DT_INT64: 9>, <DataType.DT_HALF: 19>)
    """
    plain = text.strip().upper().removeprefix("DT_")
    back = {public.upper(): short.upper() for short, public in _PUBLIC_NAMES.items()}
    plain = back.get(plain, plain)
    if f"DT_{plain}" in DataType.__members__:
        return DataType[f"DT_{plain}"]
    raise ValueError(f"{text!r} is not a TensorFlow data type")


def data_type_size(dtype: int) -> int | None:
    """Return an element's size in bytes, or None where it varies (string, resource, variant)."""
    return _SIZES.get(base_type(dtype))


def count_tensor_bytes(dtype: int, shape: Sequence[int] | None) -> int | None:
    """Return a tensor's size in bytes, None where its type or shape leaves it open (-1: any size of a dimension).

    >>> count_tensor_bytes(DataType.DT_FLOAT, (2, 3)), count_tensor_bytes(DataType.DT_FLOAT, (-1, 3))
    (24, None)
    """
    element = data_type_size(dtype)
    if shape is None or element is None or any(dim < 0 for dim in shape):
        return None
    return prod(shape) * element
