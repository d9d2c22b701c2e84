"""Shapes of outputs whose op fixes them, for graphs that carry none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from simplace.costs.layer_shapes import RESERVE_SPACE, Dims, is_kept
from simplace.costs.recurrent_memory import find_reserve_shape


def infer_shape(op: str, attrs: Mapping[str, Any], inputs: Sequence[Dims], slot: int = 0) -> Dims | None:
    """Return the shape of an output, None where there is no rule or the inputs do not fit it.

    >>> infer_shape("MatMul", {"transpose_a": True}, [(5, 3), (5, 7)]), infer_shape("Tile", {}, [(2,), (1,)])
    ((3, 7), None)
    >>> infer_shape("Conv2D", {"strides": (1, 2, 2, 1), "padding": b"SAME"}, [(8, 9, 9, 3), (3, 3, 3, 16)])
    (8, 5, 5, 16)
    """
    if is_kept(op, slot):
        return find_reserve_shape(op, attrs, inputs) if slot == RESERVE_SPACE else ()
    rule = None if slot else _RULES.get(op)
    return rule(attrs, inputs) if rule is not None else None


def _infer_matmul(attrs: Mapping[str, Any], inputs: Sequence[Dims]) -> Dims | None:
    if len(inputs) < 2 or min(len(inputs[0]), len(inputs[1])) < 2:
        return None
    left, right = inputs[0], inputs[1]
    rows = left[-1] if attrs.get("transpose_a") or attrs.get("adj_x") else left[-2]
    columns = right[-2] if attrs.get("transpose_b") or attrs.get("adj_y") else right[-1]
    return (*max(left[:-2], right[:-2], key=len), rows, columns)


def _infer_conv2d(attrs: Mapping[str, Any], inputs: Sequence[Dims]) -> Dims | None:
    strides = attrs.get("strides")
    if len(inputs) < 2 or len(inputs[0]) != 4 or len(inputs[1]) != 4 or not isinstance(strides, tuple):
        return None
    if attrs.get("data_format", b"NHWC") != b"NHWC" or len(strides) != 4:
        return None
    image, filters = inputs[0], inputs[1]
    lost = (0, 0) if attrs.get("padding") == b"SAME" else (filters[0] - 1, filters[1] - 1)
    height, width = (-(-(image[i + 1] - lost[i]) // strides[i + 1]) for i in (0, 1))
    return image[0], height, width, filters[3]


_RULES: Mapping[str, Callable[[Mapping[str, Any], Sequence[Dims]], Dims | None]] = {
    **dict.fromkeys("MatMul BatchMatMul BatchMatMulV2 BatchMatMulV3".split(), _infer_matmul),
    "Conv2D": _infer_conv2d,
}
