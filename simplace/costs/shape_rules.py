"""Shapes of outputs from those of inputs, for graphs that carry none, such as a frozen GraphDef.

As the shape functions of tensorflow/core/ops and core/framework/common_shape_fns.cc have them, with all sizes known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from math import prod
from typing import Any

from simplace.costs.layer_shapes import RESERVE_SPACE, Dims, is_kept
from simplace.costs.recurrent_memory import find_reserve_shape
from simplace.graph.integer_ops import Value

Rule = Callable[[Mapping[str, Any], Sequence[Dims], Sequence[Value]], Dims | None]


def infer_shape(
    op: str, attrs: Mapping[str, Any], inputs: Sequence[Dims], slot: int = 0, values: Sequence[Value] = ()
) -> Dims | None:
    """Return the shape of an output, None where there is no rule or the inputs do not fit it.

    `values` are the integers that inputs are, in a row, as far as they are known: axes, paddings, shapes.

    >>> infer_shape("MatMul", {"transpose_a": True}, [(5, 3), (5, 7)]), infer_shape("Tile", {}, [(2,), (1,)])
    ((3, 7), None)
    >>> infer_shape("Conv2D", {"strides": (1, 2, 2, 1), "padding": b"SAME"}, [(8, 9, 9, 3), (3, 3, 3, 16)])
    (8, 5, 5, 16)
    >>> infer_shape("Reshape", {}, [(8, 5, 16), (2,)], values=[None, (-1, 16)])
    (40, 16)
    >>> infer_shape("Mean", {}, [(8, 5, 16), (1,)], values=[None, (1,)]), infer_shape("AddV2", {}, [(8, 5, 16), (16,)])
    ((8, 16), (8, 5, 16))
    """
    if is_kept(op, slot):
        return find_reserve_shape(op, attrs, inputs) if slot == RESERVE_SPACE else ()
    if not inputs:
        return None
    if op in _NORMALIZATIONS and slot:
        return inputs[1] if len(inputs) > 1 else None
    if slot and op not in _ALIKE:
        return None
    rule = _RULES.get(op)
    return rule(attrs, inputs, values) if rule is not None else None


def _value(values: Sequence[Value], place: int) -> tuple[int, ...] | None:
    """Return the integers of an input, None where one is not known."""
    found = values[place] if place < len(values) else None
    row = (found,) if isinstance(found, int) else found
    known = tuple(one for one in row or () if one is not None)
    return known if row is not None and len(known) == len(row) else None


def _keep(attrs: Mapping[str, Any], inputs: Sequence[Dims], values: Sequence[Value]) -> Dims | None:
    return inputs[0]


def _broadcast(attrs: Mapping[str, Any], inputs: Sequence[Dims], values: Sequence[Value]) -> Dims | None:
    sides = zip_longest(*(reversed(shape) for shape in inputs), fillvalue=1)
    found = [{size for size in sizes if size != 1} for sizes in sides]
    return tuple(next(iter(sizes), 1) for sizes in reversed(found)) if all(len(sizes) < 2 for sizes in found) else None


def _infer_matmul(attrs: Mapping[str, Any], inputs: Sequence[Dims], values: Sequence[Value]) -> Dims | None:
    if len(inputs) < 2 or min(len(inputs[0]), len(inputs[1])) < 2:
        return None
    left, right = inputs[0], inputs[1]
    rows = left[-1] if attrs.get("transpose_a") or attrs.get("adj_x") else left[-2]
    columns = right[-2] if attrs.get("transpose_b") or attrs.get("adj_y") else right[-1]
    return (*max(left[:-2], right[:-2], key=len), rows, columns)


def _infer_windows(
    attrs: Mapping[str, Any], image: Dims, window: Sequence[int], channels: Callable[[int], int]
) -> Dims | None:
    """Return the shape of what windows of an image become, each a pixel with so many channels of those of the image."""
    strides, dilations = attrs.get("strides"), attrs.get("dilations") or (1,) * 4
    if len(image) != 4 or not isinstance(strides, tuple) or len(strides) != 4 or len(dilations) != 4:
        return None
    places = (2, 3) if attrs.get("data_format", b"NHWC") == b"NCHW" else (1, 2)
    paddings = attrs.get("explicit_paddings") or ()
    made = list(image)
    for place, size in zip(places, window, strict=False):
        reach = dilations[place] * (size - 1)
        if attrs.get("padding") == b"SAME":
            reach = 0
        elif attrs.get("padding") == b"EXPLICIT" and len(paddings) == 8:
            reach -= paddings[2 * place] + paddings[2 * place + 1]
        made[place] = max(0, -(-(image[place] - reach) // max(1, strides[place])))
    depth = 1 if places == (2, 3) else 3
    made[depth] = channels(image[depth])
    return tuple(made)


def _infer_conv2d(attrs: Mapping[str, Any], inputs: Sequence[Dims], values: Sequence[Value]) -> Dims | None:
    if len(inputs) < 2 or len(inputs[1]) != 4:
        return None
    filters = inputs[1]
    return _infer_windows(attrs, inputs[0], filters[:2], lambda _: filters[3])


def _infer_depthwise(attrs: Mapping[str, Any], inputs: Sequence[Dims], values: Sequence[Value]) -> Dims | None:
    if len(inputs) < 2 or len(inputs[1]) != 4:
        return None
    filters = inputs[1]
    return _infer_windows(attrs, inputs[0], filters[:2], lambda _: filters[2] * filters[3])


def _infer_pooling(attrs: Mapping[str, Any], inputs: Sequence[Dims], values: Sequence[Value]) -> Dims | None:
    window = attrs.get("ksize")
    if not isinstance(window, tuple) or len(window) != 4:
        return None
    sides = window[2:] if attrs.get("data_format", b"NHWC") == b"NCHW" else window[1:3]
    return _infer_windows(attrs, inputs[0], sides, lambda channels: channels)


def _infer_pad(attrs: Mapping[str, Any], inputs: Sequence[Dims], values: Sequence[Value]) -> Dims | None:
    added = _value(values, 1)
    if added is None or len(added) != 2 * len(inputs[0]):
        return None
    return tuple(size + before + after for size, before, after in zip(inputs[0], added[::2], added[1::2], strict=True))


def _infer_reduction(attrs: Mapping[str, Any], inputs: Sequence[Dims], values: Sequence[Value]) -> Dims | None:
    axes, rank = _value(values, 1), len(inputs[0])
    if axes is None or any(not -rank <= axis < rank for axis in axes):
        return None
    reduced = {axis % rank for axis in axes}
    if attrs.get("keep_dims"):
        return tuple(1 if place in reduced else size for place, size in enumerate(inputs[0]))
    return tuple(size for place, size in enumerate(inputs[0]) if place not in reduced)


def _infer_choice(attrs: Mapping[str, Any], inputs: Sequence[Dims], values: Sequence[Value]) -> Dims | None:
    """Return the shape of what ArgMax and its like find along an axis."""
    return _infer_reduction({}, inputs, values)


def _infer_reshape(attrs: Mapping[str, Any], inputs: Sequence[Dims], values: Sequence[Value]) -> Dims | None:
    """Return the shape that is asked for; one size that is not known is what the elements leave for it."""
    asked = values[1] if len(values) > 1 else None
    if not isinstance(asked, tuple):
        return None
    sizes = [size if size is not None and size >= 0 else None for size in asked]
    known, elements = prod(size for size in sizes if size is not None), prod(inputs[0])
    if sizes.count(None) > 1 or not known or elements % known or (None not in sizes and known != elements):
        return None
    return tuple(elements // known if size is None else size for size in sizes)


def _infer_squeeze(attrs: Mapping[str, Any], inputs: Sequence[Dims], values: Sequence[Value]) -> Dims | None:
    rank = max(1, len(inputs[0]))
    chosen = {axis % rank for axis in attrs.get("squeeze_dims") or ()}
    return tuple(size for place, size in enumerate(inputs[0]) if size != 1 or (chosen and place not in chosen))


def _infer_expand(attrs: Mapping[str, Any], inputs: Sequence[Dims], values: Sequence[Value]) -> Dims | None:
    axis = _value(values, 1)
    if axis is None or len(axis) != 1:
        return None
    place = axis[0] % (len(inputs[0]) + 1)
    return (*inputs[0][:place], 1, *inputs[0][place:])


def _infer_transpose(attrs: Mapping[str, Any], inputs: Sequence[Dims], values: Sequence[Value]) -> Dims | None:
    order = _value(values, 1)
    if order is None or sorted(order) != list(range(len(inputs[0]))):
        return None
    return tuple(inputs[0][place] for place in order)


def _infer_concat(attrs: Mapping[str, Any], inputs: Sequence[Dims], values: Sequence[Value]) -> Dims | None:
    axis, parts = _value(values, len(inputs) - 1), inputs[:-1]
    if not axis or not parts or len({len(part) for part in parts}) > 1 or not parts[0]:
        return None
    place = axis[0] % len(parts[0])
    return (*parts[0][:place], sum(part[place] for part in parts), *parts[0][place + 1 :])


def _infer_pack(attrs: Mapping[str, Any], inputs: Sequence[Dims], values: Sequence[Value]) -> Dims | None:
    place = int(attrs.get("axis") or 0) % (len(inputs[0]) + 1)
    return (*inputs[0][:place], len(inputs), *inputs[0][place:])


def _infer_unpack(attrs: Mapping[str, Any], inputs: Sequence[Dims], values: Sequence[Value]) -> Dims | None:
    if not inputs[0]:
        return None
    place = int(attrs.get("axis") or 0) % len(inputs[0])
    return (*inputs[0][:place], *inputs[0][place + 1 :])


def _infer_split(attrs: Mapping[str, Any], inputs: Sequence[Dims], values: Sequence[Value]) -> Dims | None:
    axis, parts = _value(values, 0), attrs.get("num_split")
    if not axis or len(inputs) < 2 or not inputs[1] or not isinstance(parts, int) or parts < 1:
        return None
    place = axis[0] % len(inputs[1])
    return (*inputs[1][:place], inputs[1][place] // parts, *inputs[1][place + 1 :])


def _infer_tile(attrs: Mapping[str, Any], inputs: Sequence[Dims], values: Sequence[Value]) -> Dims | None:
    times = _value(values, 1)
    if times is None or len(times) != len(inputs[0]):
        return None
    return tuple(size * many for size, many in zip(inputs[0], times, strict=True))


def _infer_fill(attrs: Mapping[str, Any], inputs: Sequence[Dims], values: Sequence[Value]) -> Dims | None:
    return _value(values, 0)


def _infer_broadcast_to(attrs: Mapping[str, Any], inputs: Sequence[Dims], values: Sequence[Value]) -> Dims | None:
    return _value(values, 1)


def _infer_slice(attrs: Mapping[str, Any], inputs: Sequence[Dims], values: Sequence[Value]) -> Dims | None:
    begin, sizes = _value(values, 1), _value(values, 2)
    if begin is None or sizes is None or not len(begin) == len(sizes) == len(inputs[0]):
        return None
    return tuple(
        whole - first if size < 0 else size for whole, first, size in zip(inputs[0], begin, sizes, strict=True)
    )


def _infer_strided(attrs: Mapping[str, Any], inputs: Sequence[Dims], values: Sequence[Value]) -> Dims | None:
    """Return the shape of a slice without new axes and ellipses."""
    begin, end, steps = (_value(values, place) for place in (1, 2, 3))
    if begin is None or end is None or steps is None or attrs.get("new_axis_mask") or attrs.get("ellipsis_mask"):
        return None
    if not len(begin) == len(end) == len(steps) <= len(inputs[0]) or 0 in steps:
        return None
    made: list[int] = []
    for place, size in enumerate(inputs[0]):
        if place >= len(begin):
            made.append(size)
            continue
        if _is_set(attrs, "shrink_axis_mask", place):
            continue
        first = None if _is_set(attrs, "begin_mask", place) else begin[place]
        last = None if _is_set(attrs, "end_mask", place) else end[place]
        made.append(len(range(*slice(first, last, steps[place]).indices(size))))
    return tuple(made)


def _is_set(attrs: Mapping[str, Any], mask: str, place: int) -> bool:
    return bool(int(attrs.get(mask) or 0) >> place & 1)


def _infer_gather(attrs: Mapping[str, Any], inputs: Sequence[Dims], values: Sequence[Value]) -> Dims | None:
    axis = _value(values, 2) if len(inputs) > 2 else (0,)
    if not axis or len(inputs) < 2 or not inputs[0] or attrs.get("batch_dims"):
        return None
    place = axis[0] % len(inputs[0])
    return (*inputs[0][:place], *inputs[1], *inputs[0][place + 1 :])


def _infer_to_batch(attrs: Mapping[str, Any], inputs: Sequence[Dims], values: Sequence[Value]) -> Dims | None:
    block, added = _value(values, 1), _value(values, 2)
    if not block or added is None or len(added) != 2 * len(block) or len(inputs[0]) <= len(block) or min(block) < 1:
        return None
    padded = (size + added[2 * i] + added[2 * i + 1] for i, size in enumerate(inputs[0][1 : len(block) + 1]))
    sides = (size // many for size, many in zip(padded, block, strict=True))
    return (inputs[0][0] * prod(block), *sides, *inputs[0][len(block) + 1 :])


def _infer_to_space(attrs: Mapping[str, Any], inputs: Sequence[Dims], values: Sequence[Value]) -> Dims | None:
    block, cut = _value(values, 1), _value(values, 2)
    if not block or cut is None or len(cut) != 2 * len(block) or len(inputs[0]) <= len(block) or min(block) < 1:
        return None
    whole = (size * many for size, many in zip(inputs[0][1:], block, strict=False))
    sides = (size - cut[2 * i] - cut[2 * i + 1] for i, size in enumerate(whole))
    return (inputs[0][0] // prod(block), *sides, *inputs[0][len(block) + 1 :])


def _infer_resized(attrs: Mapping[str, Any], inputs: Sequence[Dims], values: Sequence[Value]) -> Dims | None:
    size = _value(values, 1)
    return (inputs[0][0], *size, inputs[0][3]) if size and len(size) == 2 and len(inputs[0]) == 4 else None


def _count(attrs: Mapping[str, Any], inputs: Sequence[Dims], values: Sequence[Value]) -> Dims | None:
    return (len(inputs[0]),)


def _be_scalar(attrs: Mapping[str, Any], inputs: Sequence[Dims], values: Sequence[Value]) -> Dims | None:
    return ()


_NORMALIZATIONS = frozenset({"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"})
_ALIKE = frozenset({"Split", "Unpack"})  # whose outputs have one shape
_KEEPING = (
    "Identity Relu Relu6 Elu Selu LeakyRelu "
    "Sigmoid Tanh Softmax LogSoftmax Softplus Softsign BiasAdd BiasAddV1 Cast Rsqrt Sqrt "
    "Exp Expm1 Log Log1p Neg Square Abs Erf Erfc Floor Ceil Round Rint Sign Sin Cos Reciprocal Inv LogicalNot AddN "
    "ClipByValue CheckNumerics StopGradient PreventGradient LRN ZerosLike OnesLike Snapshot Cumsum Cumprod "
    "ReverseV2 FakeQuantWithMinMaxVars FakeQuantWithMinMaxArgs Relu6Grad ReluGrad TanhGrad SigmoidGrad MatrixBandPart"
)
_BROADCASTING = (
    "Add AddV2 Sub Mul RealDiv Div DivNoNan FloorDiv FloorMod Mod Maximum Minimum SquaredDifference Pow Less LessEqual "
    "Greater GreaterEqual Equal NotEqual LogicalAnd LogicalOr SelectV2"
)
_RULES: Mapping[str, Rule] = {
    **dict.fromkeys(_KEEPING.split(), _keep),
    **dict.fromkeys(_NORMALIZATIONS, _keep),
    **dict.fromkeys(_BROADCASTING.split(), _broadcast),
    **dict.fromkeys("MatMul BatchMatMul BatchMatMulV2 BatchMatMulV3".split(), _infer_matmul),
    **dict.fromkeys("Sum Mean Max Min Prod All Any".split(), _infer_reduction),
    **dict.fromkeys(("ArgMax", "ArgMin"), _infer_choice),
    **dict.fromkeys(("Pad", "PadV2", "MirrorPad"), _infer_pad),
    **dict.fromkeys(("MaxPool", "AvgPool"), _infer_pooling),
    **dict.fromkeys(("Gather", "GatherV2", "ResourceGather"), _infer_gather),
    **dict.fromkeys(("ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic"), _infer_resized),
    **dict.fromkeys(("Size", "Rank", "L2Loss"), _be_scalar),
    "Conv2D": _infer_conv2d, "DepthwiseConv2dNative": _infer_depthwise, "Reshape": _infer_reshape,
    "Squeeze": _infer_squeeze, "ExpandDims": _infer_expand, "Transpose": _infer_transpose, "ConcatV2": _infer_concat,
    "Pack": _infer_pack, "Unpack": _infer_unpack, "Split": _infer_split, "Tile": _infer_tile, "Fill": _infer_fill,
    "SpaceToBatchND": _infer_to_batch, "BatchToSpaceND": _infer_to_space,
    "BroadcastTo": _infer_broadcast_to, "Slice": _infer_slice, "StridedSlice": _infer_strided, "Shape": _count,
}  # fmt: skip
