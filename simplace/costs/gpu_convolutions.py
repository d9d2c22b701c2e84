"""How long cuDNN's convolutions take on a GPU: products over tiles of an image, by the algorithm that is fastest.

As `gpu_kernels`, the formulas take floats and numpy arrays alike. The algorithms are those of the cuDNN API reference
(cudnnConvolutionFwdAlgo_t and its siblings):

- Implicit GEMM: the output (positions x channels) is one product, whose operand of image patches is never written down.
- Winograd at stride 1 (Lavin and Gray, CVPR 2016): F(2 x 2, 3 x 3) needs 16 products in place of 36 and keeps its tiles
  in shared memory; F(4 x 4, 3 x 3) needs 36 in place of 144, F(4 x 4, 5 x 5) 64 in place of 400, as batched products
  between transforms that go through memory. Not on tensor cores.
- Gradient of the input at a stride: a product over the positions of the input in which zeros stand between those of the
  output, or one over the positions of the output whose results are added into the input. On tensor cores also one
  without zeros, for each remainder of the stride by itself ("strided Dgrad" of NVIDIA's CUTLASS).
- Gradient of the filter: a product over all positions, which blocks share and add up.

Tensor cores take channels by eights: fewer are filled up with zeros. Besides its main kernel a call has smaller ones,
for the offsets of the window and the filter in the order that the main one reads: a start, and some passes over the
filter; on tensor cores one that takes the least time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Literal, NamedTuple

from simplace.costs.gpu_kernels import (
    KernelTime,
    Numbers,
    ProductPlan,
    Sizes,
    smaller,
    time_product_alone,
)

Pass = Literal["forward", "input", "filter"]  # the convolution, and the gradients of its input and of its filter
_NEVER = 1e9  # seconds: of an algorithm that does not do a shape
_EIGHT = 8  # channels that an instruction of tensor cores takes


class Convolution(NamedTuple):
    """Record of a convolution's shape; `stride` is the product of both. Fields may be arrays."""

    batch: Numbers
    in_channels: Numbers
    height: Numbers
    width: Numbers
    out_channels: Numbers
    kernel_h: Numbers
    kernel_w: Numbers
    out_h: Numbers
    out_w: Numbers
    stride: Numbers

    @property
    def taps(self) -> Numbers:
        """Count the positions of the window."""
        return self.kernel_h * self.kernel_w

    @property
    def image(self) -> Numbers:
        """Count the elements of the input."""
        return self.batch * self.in_channels * self.height * self.width

    @property
    def weights(self) -> Numbers:
        """Count the elements of the filter."""
        return self.in_channels * self.out_channels * self.taps

    @property
    def made(self) -> Numbers:
        """Count the elements of the output."""
        return self.batch * self.out_channels * self.out_h * self.out_w


def time_convolution(plan: ProductPlan, conv: Convolution, kind: Pass, on_tensor_cores: bool) -> KernelTime:
    """Return the time of a convolution or one of its gradients; the constants of the plan hold those of "conv", too."""
    if on_tensor_cores:
        conv = _fill_channels(conv)
    gpu, c, made, weights = plan.gpu, plan.c, conv.made, conv.weights
    moved = plan.width * (conv.image + weights + made)
    least = min if isinstance(moved, float) else smaller
    seconds: Numbers = _NEVER
    for algorithm in _ALGORITHMS[kind, on_tensor_cores]:
        seconds = least(seconds, algorithm(plan, conv, moved, seconds))
    flops = 2 * conv.out_h * conv.out_w * conv.batch * weights
    helpers = c["floor_s"]
    if not on_tensor_cores:
        helpers = c[f"{kind}_helper_s"] + c["filters"] * plan.width * weights / plan.bandwidth
    seconds = seconds + helpers
    return KernelTime(seconds, flops / plan.peak, moved / gpu.bandwidth, c["floor_s"])


def _fill_channels(conv: Convolution) -> Convolution:
    batch, ins, height, width, outs, *rest = conv
    return Convolution(batch, -(-ins // _EIGHT) * _EIGHT, height, width, -(-outs // _EIGHT) * _EIGHT, *rest)


# An algorithm returns seconds; for a single shape it may return more than it takes where that is longer than `most_s`,
# but not less than `most_s`.


def _time_part(plan: ProductPlan, share: float, sizes: Sizes, moved: Numbers, most_s: Numbers) -> Numbers:
    """Return the seconds of products that reach a share of what cuBLAS reaches."""
    floor_s = plan.c["floor_s"]
    return time_product_alone(plan, sizes, 0.0, moved, (most_s - floor_s) * share) / share + floor_s


def _time_forward(plan: ProductPlan, conv: Convolution, moved: Numbers, most_s: Numbers) -> Numbers:
    positions = conv.batch * conv.out_h * conv.out_w
    k = conv.in_channels * conv.taps
    return _time_part(plan, plan.c["forward"], (1.0, positions, conv.out_channels, k), moved, most_s)


def _time_gathered_input(plan: ProductPlan, conv: Convolution, moved: Numbers, most_s: Numbers) -> Numbers:
    positions, k = conv.batch * conv.height * conv.width, conv.out_channels * conv.taps
    return _time_part(plan, plan.c["input"], (1.0, positions, conv.in_channels, k), moved, most_s)


def _time_input_among_zeros(plan: ProductPlan, conv: Convolution, moved: Numbers, most_s: Numbers) -> Numbers:
    """Return the seconds of `_time_gathered_input`, or very many where `_time_parts_of_input` has the same product."""
    if isinstance(conv.height, float) and conv.height * conv.width == conv.out_h * conv.out_w:
        return _NEVER
    return _time_gathered_input(plan, conv, moved, most_s)


def _time_added_input(plan: ProductPlan, conv: Convolution, moved: Numbers, most_s: Numbers) -> Numbers:
    c, outs, patches = plan.c, conv.batch * conv.out_h * conv.out_w, conv.in_channels * conv.taps
    added = plan.width * (2 * outs * patches / c["scatter"] + conv.image) / plan.bandwidth + c["floor_s"]
    if isinstance(added, float) and added >= most_s:
        return added
    left_s = most_s - added
    return added + _time_part(plan, c["input"], (1.0, outs, patches, conv.out_channels), moved, left_s)


def _time_parts_of_input(plan: ProductPlan, conv: Convolution, moved: Numbers, most_s: Numbers) -> Numbers:
    """Return the seconds of one product a remainder of the stride: together as many multiplications as forward."""
    outs, k = conv.batch * conv.out_h * conv.out_w, conv.out_channels * conv.taps
    return _time_part(plan, plan.c["input"], (1.0, outs, conv.in_channels, k), moved, most_s)


def _time_filter(plan: ProductPlan, conv: Convolution, moved: Numbers, most_s: Numbers) -> Numbers:
    positions, m = conv.batch * conv.out_h * conv.out_w, conv.in_channels * conv.taps
    return _time_part(plan, plan.c["filter"], (1.0, m, conv.out_channels, positions), moved, most_s)


def _time_fused_winograd(
    plan: ProductPlan, conv: Convolution, moved: Numbers, most_s: Numbers, *, kind: Pass = "forward"
) -> Numbers:
    """Return the seconds of F(2 x 2, 3 x 3) in one kernel; very many for other windows and strides."""
    barred = _NEVER * (1 - (conv.kernel_w == conv.kernel_h) * (conv.kernel_h == 3) * (conv.stride == 1))
    if isinstance(barred, float) and barred:
        return barred
    high, wide, read, wrote = _find_sides(conv, kind)
    small = conv.batch * -(-high // 2) * -(-wide // 2)
    return barred + _time_part(plan, plan.c["winograd"], (16.0, small, wrote, read), moved, most_s)


def _time_apart_winograd(
    plan: ProductPlan, conv: Convolution, moved: Numbers, most_s: Numbers, *, kind: Pass = "forward"
) -> Numbers:
    """Return the seconds between transforms through memory; very many for other windows than 3 x 3 and 5 x 5."""
    c, side = plan.c, conv.kernel_h
    barred = _NEVER * (1 - (conv.kernel_w == side) * ((side == 3) * 1 + (side == 5)) * (conv.stride == 1))
    if isinstance(barred, float) and barred:
        return barred
    high, wide, read, wrote = _find_sides(conv, kind)
    tiles = conv.batch * -(-high // 4) * -(-wide // 4)
    many = (side + 3.0) ** 2
    values = plan.width * many * (tiles * (read + wrote) + read * wrote)  # from one transform, or for the other
    transforms = (values + moved) / (c["transform"] * plan.bandwidth) + 3 * c["floor_s"]  # as there are three kernels
    m, n, k = (read, wrote, tiles) if kind == "filter" else (tiles, wrote, read)
    return barred + transforms + _time_part(plan, c["winograd_apart"], (many, m, n, k), values, most_s - transforms)


def _find_sides(conv: Convolution, kind: Pass) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Return the sides of what a pass makes, the channels that it reads, and those that it writes."""
    if kind == "input":
        return conv.height, conv.width, conv.out_channels, conv.in_channels
    return conv.out_h, conv.out_w, conv.in_channels, conv.out_channels


# The fastest of these counts. Those come first that are often the fastest: then the others need no search for a tiling.
_ALGORITHMS: Mapping[tuple[Pass, bool], Sequence[Callable[[ProductPlan, Convolution, Numbers, Numbers], Numbers]]] = {
    ("forward", True): (_time_forward,),
    ("input", True): (_time_parts_of_input, _time_input_among_zeros, _time_added_input),
    ("filter", True): (_time_filter,),
    ("forward", False): (_time_apart_winograd, _time_fused_winograd, _time_forward),
    ("input", False): (
        partial(_time_fused_winograd, kind="input"), partial(_time_apart_winograd, kind="input"),
        _time_gathered_input, _time_added_input,
    ),
    ("filter", False): (partial(_time_apart_winograd, kind="filter"), _time_filter),
}  # fmt: skip
