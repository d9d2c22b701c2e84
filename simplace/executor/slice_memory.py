"""Whether a slice shares the memory of the tensor that it is taken of.

Mirrors tensorflow/core/util/strided_slice_op.cc (`ValidateStridedSliceOp`), tensorflow/core/framework/ops_util.h
(`IsDim0SliceAligned`) and what tensorflow/core/kernels/strided_slice_op.cc, slice_op.cc and unpack_op.cc ask of them:
all of a tensor, or some of its rows, where these begin at an address that Eigen takes for aligned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

from simplace.costs.cost_model import Tensor

STRIDED_SLICE, SLICE, UNPACK = "StridedSlice", "Slice", "Unpack"
SLICES = frozenset({STRIDED_SLICE, SLICE, UNPACK})
_ALIGNMENT = 64  # bytes: EIGEN_MAX_ALIGN_BYTES
_OF_SLICE, _OF_STRIDED_SLICE = 2, 3  # inputs of whole numbers: begins and sizes; begins, ends and strides
Numbers = Sequence[int] | None  # the values of an input, None where they are not known


class _Range(NamedTuple):
    """Record of what is taken of a dimension: from `begin` up to `end`, and whether that is all of it, in its order."""

    begin: int
    end: int
    stride: int
    is_whole: bool


def shares_memory(op: str, attrs: Mapping[str, Any], given: Tensor, output: Tensor, numbers: Sequence[Numbers]) -> bool:
    """Return whether an output of one of `SLICES` is part of the memory of its input.

    `numbers` are the values of the inputs after the first: where a slice begins, and more. Without them the shapes
    tell: an output that is some rows of the input is taken to be in its memory.

    >>> square, row, line = Tensor("float32", (16, 16), 1024), Tensor("float32", (16,), 64), Tensor("", (32,), 128)
    >>> shares_memory("Unpack", {"axis": 0}, square, row, []), shares_memory("Unpack", {"axis": 1}, square, row, [])
    (True, False)
    >>> masks = {"begin_mask": 1, "end_mask": 1}
    >>> every_other = Tensor("float32", (8, 16), 512)
    >>> shares_memory("StridedSlice", masks, square, every_other, [(0,), (0,), (2,)])
    False
    >>> shares_memory("StridedSlice", {"shrink_axis_mask": 1}, square, row, [(3,), (4,), (1,)])
    True
    >>> shares_memory("StridedSlice", {"shrink_axis_mask": 2, **masks}, square, row, [(0, 3), (0, 4), (1, 1)])
    False
    >>> part = Tensor("", (16,), 64)
    >>> [shares_memory("Slice", {}, line, part, [(begin,), (16,)]) for begin in (16, 8)]
    [True, False]
    """
    if op == UNPACK:
        is_whole = (given.dtype, given.size) == (output.dtype, output.size)
        is_first = int(attrs.get("axis") or 0) % max(len(given.shape), 1) == 0
        return is_whole or (is_first and is_rows_of(given, output))
    ranges = _find_ranges(op, attrs, given.shape, numbers)
    if ranges is None:
        is_whole = given.size == output.size if op == STRIDED_SLICE else given.shape == output.shape
        return (is_whole and given.dtype == output.dtype) or is_rows_of(given, output)
    if all(one.is_whole for one in ranges):
        return True
    if ranges[0].stride != 1 or not all(one.is_whole for one in ranges[1:]):
        return False
    element = given.size // max(1, prod(given.shape))
    if len(ranges) == 1:
        ends = ranges[0].begin, ranges[0].end if op == STRIDED_SLICE else ranges[0].end - ranges[0].begin
        return all(end * element % _ALIGNMENT == 0 for end in ends)
    return _has_aligned_rows(given)


def _find_ranges(
    op: str, attrs: Mapping[str, Any], shape: Sequence[int], numbers: Sequence[Numbers]
) -> list[_Range] | None:
    """Return what is taken of each dimension, None where it is not known."""
    if not shape:
        return []
    known = [tuple(each) for each in numbers if each is not None]
    if op == SLICE and len(known) == len(numbers) == _OF_SLICE:
        begins, sizes = known
        ends = (dim if size < 0 else begin + size for begin, size, dim in zip(begins, sizes, shape, strict=True))
        return [_make_range(begin, end, 1, dim) for begin, end, dim in zip(begins, ends, shape, strict=True)]
    if op == STRIDED_SLICE and len(known) == len(numbers) == _OF_STRIDED_SLICE:
        return _read_strided(attrs, shape, *known)
    return None


def _read_strided(
    attrs: Mapping[str, Any], shape: Sequence[int], begins: Sequence[int], ends: Sequence[int], strides: Sequence[int]
) -> list[_Range]:
    """Return what is taken of each dimension, with all of those that no number is for (`BuildDenseSpec`)."""
    found: list[_Range] = []
    for i, (begin, end, stride) in enumerate(zip(begins, ends, strides, strict=True)):
        if _has_bit(attrs, "ellipsis_mask", i):
            left = sum(not _has_bit(attrs, "new_axis_mask", k) for k in range(i + 1, len(begins)))
            found += [_make_range(0, dim, 1, dim) for dim in shape[len(found) : len(shape) - left]]
        elif not _has_bit(attrs, "new_axis_mask", i):
            dim, is_one = shape[len(found)], _has_bit(attrs, "shrink_axis_mask", i)
            first = 0 if _has_bit(attrs, "begin_mask", i) and not is_one else _count_from_start(begin, dim)
            last = dim if _has_bit(attrs, "end_mask", i) else _count_from_start(end, dim)
            found.append(_make_range(first, first + 1 if is_one else last, stride, dim))
    return found + [_make_range(0, dim, 1, dim) for dim in shape[len(found) :]]


def _count_from_start(place: int, dim: int) -> int:
    return max(0, min(dim, place + dim if place < 0 else place))


def _make_range(begin: int, end: int, stride: int, dim: int) -> _Range:
    return _Range(begin, end, stride, stride == 1 and begin == 0 and end == dim)


def _has_bit(attrs: Mapping[str, Any], mask: str, place: int) -> bool:
    return bool(int(attrs.get(mask) or 0) >> place & 1)


def is_rows_of(given: Tensor, output: Tensor) -> bool:
    """Return whether an output is rows of a tensor that are aligned wherever they begin; a scalar has no rows."""
    if not given.shape:
        return False
    row = given.shape[1:]
    is_part = 0 < output.size <= given.size and (output.shape == row or output.shape[1:] == row)
    return is_part and _has_aligned_rows(given)


def _has_aligned_rows(given: Tensor) -> bool:
    return given.size // max(1, given.shape[0]) % _ALIGNMENT == 0
