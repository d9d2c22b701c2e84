"""Check the shape of a variable as TensorFlow checks it when it makes the variable, with TensorFlow's messages.

Mirrors `IsValidShape` of tensorflow/core/framework/tensor_shape.cc for a shape that may be unknown in part.
"""

from __future__ import annotations

from typing import Any

_MOST_DIMENSIONS = 254
_LARGEST = 2**63 - 1
_UNKNOWN = -1


def find_shape_fault(shape: Any) -> str:
    """Return why a variable cannot have a shape, a TensorShapeProto, "" if it can."""
    if shape.unknown_rank:
        return ""
    sizes = [dim.size for dim in shape.dim]
    if len(sizes) > _MOST_DIMENSIONS:
        return f"Value specified for `shape` has {len(sizes)} dimensions which is over the limit of {_MOST_DIMENSIONS}."
    shown = f"[{','.join('?' if size == _UNKNOWN else str(size) for size in sizes)}]"
    elements = 1
    for size in sizes:
        if size < _UNKNOWN:
            return f"Shape {shown} has dimensions with values below -1 (where -1 means unknown)"
        elements = _UNKNOWN if _UNKNOWN in (size, elements) else elements * size
        if elements > _LARGEST:
            return f"Shape {shown} is too large (more than 2**63 - 1 entries)"
    return ""
