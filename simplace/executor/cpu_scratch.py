"""What further kernels of a CPU allocate besides their outputs: copies of sparse tensors, counters, sums of losses.

Mirrors tensorflow/core/kernels: xent_op.cc, sparse_xent_op.cc, sparse_reduce_op.cc, sparse_softmax_op.cc,
sparse_concat_op.cc, sparse_dense_binary_op_shared.cc, bincount_op.cc, multinomial_op.cc, conv_ops_impl.h,
fused_batch_norm_op.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

from simplace.costs.cost_model import Tensor

HALVES = frozenset({"float16", "bfloat16"})
_CLASS = 8  # bytes that a class takes of the sum of probabilities, a double
_FLOAT = 4  # bytes
_CHANNELS_LAST, _CHANNELS_FIRST = b"NHWC", b"NCHW"
Tensors = Sequence[Tensor]
Attrs = Mapping[str, Any]
Rule = Callable[[Tensors, Tensors, Attrs, int], list[int]]  # of inputs, outputs, attributes, and intra-op threads


def _copy_sparse(inputs: Tensors, outputs: Tensors, attrs: Attrs, threads: int) -> list[int]:
    """Indices and values are sorted in copies."""
    return [tensor.size for tensor in inputs[:2]]


def _copy_each_sparse(inputs: Tensors, outputs: Tensors, attrs: Attrs, threads: int) -> list[int]:
    """The indices of all tensors come first, then their values, then their shapes."""
    return [tensor.size for tensor in inputs[: 2 * (len(inputs) // 3)]]


def _gather_dense(inputs: Tensors, outputs: Tensors, attrs: Attrs, threads: int) -> list[int]:
    """The values of the dense tensor at the places of the sparse one's."""
    return [outputs[0].size]


def _sum_losses(inputs: Tensors, outputs: Tensors, attrs: Attrs, threads: int) -> list[int]:
    return [outputs[0].size]


def _count_by_thread(inputs: Tensors, outputs: Tensors, attrs: Attrs, threads: int) -> list[int]:
    """Each thread, and the caller's, has bins of its own."""
    if len(inputs[0].shape) > 1:
        return []
    bins = prod(outputs[0].shape)
    element = 1 if attrs.get("binary_output") is True else outputs[0].size // max(1, bins)
    return [(threads + 1) * bins * element]


def _sum_probabilities(inputs: Tensors, outputs: Tensors, attrs: Attrs, threads: int) -> list[int]:
    rows, classes = inputs[0].shape if len(inputs[0].shape) == 2 else (0, 0)
    return [_CLASS * classes] * min(threads, rows)


def _split_groups(inputs: Tensors, outputs: Tensors, attrs: Attrs, threads: int) -> list[int]:
    """A convolution of groups of channels computes on copies in which these come first."""
    image, window = inputs[0], inputs[1]
    has_groups = len(image.shape) == len(window.shape) == 4 and image.shape[3] != window.shape[2]
    is_last = attrs.get("data_format", _CHANNELS_LAST) == _CHANNELS_LAST
    return [image.size, window.size, outputs[0].size] if has_groups and is_last else []


def _turn_images(inputs: Tensors, outputs: Tensors, attrs: Attrs, threads: int) -> list[int]:
    """A normalization computes with the channels last: what it is given is turned, and what it makes is turned back."""
    return [inputs[0].size] * 2 if attrs.get("data_format") == _CHANNELS_FIRST else []


def _turn_gradients(inputs: Tensors, outputs: Tensors, attrs: Attrs, threads: int) -> list[int]:
    turned = [inputs[0].size] * 3 if attrs.get("data_format") == _CHANNELS_FIRST else []
    return turned + [_FLOAT * prod(inputs[0].shape)] * (inputs[0].dtype in HALVES)


# What allocates it before its outputs ...
EARLY_RULES: Mapping[str, Rule] = {
    "SoftmaxCrossEntropyWithLogits": _sum_losses,
    "SparseSoftmaxCrossEntropyWithLogits": _sum_losses,
    "SparseReduceSum": _copy_sparse,
    "SparseReduceMax": _copy_sparse,
    "SparseReduceSumSparse": _copy_sparse,
    "SparseReduceMaxSparse": _copy_sparse,
    "SparseSoftmax": _copy_sparse,
    "SparseConcat": _copy_each_sparse,
}
# ... and what does so after them.
LATE_RULES: Mapping[str, Rule] = {
    "SparseDenseCwiseAdd": _gather_dense,
    "SparseDenseCwiseMul": _gather_dense,
    "SparseDenseCwiseDiv": _gather_dense,
    "Bincount": _count_by_thread,
    "DenseBincount": _count_by_thread,
    "Multinomial": _sum_probabilities,
    "Conv2D": _split_groups,
    "FusedBatchNorm": _turn_images,
    "FusedBatchNormV2": _turn_images,
    "FusedBatchNormV3": _turn_images,
    "FusedBatchNormGrad": _turn_gradients,
    "FusedBatchNormGradV2": _turn_gradients,
    "FusedBatchNormGradV3": _turn_gradients,
}
RULES: Mapping[str, Rule] = {**EARLY_RULES, **LATE_RULES}
