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

from dataclasses import dataclass
from typing import Literal

from simplace.costs.gpu_kernels import KernelTime, Numbers, ProductPlan, smaller, time_product, time_traffic

Pass = Literal["forward", "input", "filter"]  # the convolution, and the gradients of its input and of its filter
_NEVER = 1e9  # seconds: of an algorithm that does not do a shape
_EIGHT = 8  # channels that an instruction of tensor cores takes


@dataclass(frozen=True, slots=True)
class Convolution:
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
    gpu, c = plan.gpu, plan.c
    moved = plan.width * (conv.image + conv.weights + conv.made)
    seconds = {"forward": _time_forward, "input": _time_input, "filter": _time_filter}[kind](plan, conv, moved)
    if not on_tensor_cores:
        seconds = smaller(seconds, _time_winograd(plan, conv, kind, moved))
    elif kind == "input":
        seconds = smaller(seconds, _time_parts_of_input(plan, conv, moved))
    flops = 2 * conv.made * conv.in_channels * conv.taps
    helpers = c["floor_s"]
    if not on_tensor_cores:
        helpers = c[f"{kind}_helper_s"] + c["filters"] * plan.width * conv.weights / plan.bandwidth
    seconds = seconds + helpers
    return KernelTime(seconds, flops / plan.peak, moved / gpu.bandwidth, c["floor_s"])


def _fill_channels(conv: Convolution) -> Convolution:
    ins, outs = (-(-channels // _EIGHT) * _EIGHT for channels in (conv.in_channels, conv.out_channels))
    return Convolution(conv.batch, ins, conv.height, conv.width, outs, conv.kernel_h, conv.kernel_w, conv.out_h,
                       conv.out_w, conv.stride)  # fmt: skip


def _time_part(
    plan: ProductPlan, share: float, b: Numbers, m: Numbers, n: Numbers, k: Numbers, moved: Numbers
) -> Numbers:
    """Return the seconds of products that reach a share of what cuBLAS reaches."""
    floor_s = plan.c["floor_s"]
    return (time_product(plan, b, m, n, k, 0.0, moved).seconds - floor_s) / share + floor_s


def _time_forward(plan: ProductPlan, conv: Convolution, moved: Numbers) -> Numbers:
    positions = conv.batch * conv.out_h * conv.out_w
    one = positions * 0.0 + 1
    return _time_part(plan, plan.c["forward"], one, positions, conv.out_channels, conv.in_channels * conv.taps, moved)


def _time_input(plan: ProductPlan, conv: Convolution, moved: Numbers) -> Numbers:
    c, positions = plan.c, conv.batch * conv.height * conv.width
    one = positions * 0.0 + 1
    gathered = _time_part(plan, c["input"], one, positions, conv.in_channels, conv.out_channels * conv.taps, moved)
    outs, patches = conv.batch * conv.out_h * conv.out_w, conv.in_channels * conv.taps
    added = time_traffic(plan.gpu, c, plan.width * (2 * outs * patches / c["scatter"] + conv.image)).seconds
    product = _time_part(plan, c["input"], one, outs, patches, conv.out_channels, moved)
    return smaller(gathered, product + added)


def _time_parts_of_input(plan: ProductPlan, conv: Convolution, moved: Numbers) -> Numbers:
    """Return the seconds of one product a remainder of the stride: together as many multiplications as forward."""
    outs = conv.batch * conv.out_h * conv.out_w
    one = outs * 0.0 + 1
    return _time_part(plan, plan.c["input"], one, outs, conv.in_channels, conv.out_channels * conv.taps, moved)


def _time_filter(plan: ProductPlan, conv: Convolution, moved: Numbers) -> Numbers:
    positions = conv.batch * conv.out_h * conv.out_w
    one = positions * 0.0 + 1
    return _time_part(plan, plan.c["filter"], one, conv.in_channels * conv.taps, conv.out_channels, positions, moved)


def _time_winograd(plan: ProductPlan, conv: Convolution, kind: Pass, moved: Numbers) -> Numbers:
    """Return the seconds of the faster of two forms; very many for other windows than 3 x 3 and 5 x 5 at stride 1."""
    c, gpu, side = plan.c, plan.gpu, conv.kernel_h
    is_three = (side == 3) * 1
    barred = _NEVER * (1 - (conv.kernel_w == side) * (is_three + (side == 5)) * (conv.stride == 1))
    high, wide = (conv.height, conv.width) if kind == "input" else (conv.out_h, conv.out_w)
    read, wrote = (conv.out_channels, conv.in_channels) if kind == "input" else (conv.in_channels, conv.out_channels)
    tiles = conv.batch * -(-high // 4) * -(-wide // 4)
    many = (side + 3.0) ** 2
    values = plan.width * many * (tiles * (read + wrote) + read * wrote)  # from one transform, or for the other
    transforms = time_traffic(gpu, c, (values + moved) / c["transform"]).seconds + 2 * c["floor_s"]
    if kind == "filter":
        return barred + transforms + _time_part(plan, c["winograd_apart"], many, read, wrote, tiles, values)
    apart = transforms + _time_part(plan, c["winograd_apart"], many, tiles, wrote, read, values)
    small = conv.batch * -(-high // 2) * -(-wide // 2)
    fused = _time_part(plan, c["winograd"], tiles * 0.0 + 16, small, wrote, read, moved) + _NEVER * (1 - is_three)
    return barred + smaller(fused, apart)
