"""How long cuDNN's recurrent layers take on a GPU: a product each time step, which waits for the step before.

As `gpu_kernels`, the formulas take floats and numpy arrays alike. A step multiplies the weights of all gates (gates x
hidden by hidden) with the states of a batch, then the gates' functions run over the results; the gradient through time
does the same backwards, with the weights turned. The gradient of the weights is one product over all steps. That is
cuDNN's standard algorithm; its persistent ones, which keep weights in registers, are not modelled.

- Up to 16 sequences, a kernel may stream the weights from memory, once for each eight columns of states.
- Else the product is cuBLAS's. On GPUs before Volta (cuDNN 5 and 6, CUDA 8) it reaches a share of that, and the kernel
  for up to 32 columns waits for memory at each element of the sum, which nothing splits: its time grows with the length
  of the sum and hardly with anything else. So a batch of 32 takes up to three times as long as one of 64.
- Each step takes a fixed time for launches and for the gates' functions (`step_s`: measured with cuDNN 5 to 7). The
  kernels of cuDNN 9, which TensorFlow has, take 4 us a step besides the product (`step_s_cudnn9`); how long the host
  takes to launch two of them a step is another matter.
- The gradient of the weights is added to what was there, which takes some passes over the weights more, and smaller
  kernels run before and after its product (`weights_helper_s`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from simplace.costs.gpu_kernels import KernelTime, Numbers, ProductPlan, blend, smaller, time_product

RecurrentPass = Literal["forward", "input", "weights"]  # and the gradients through time, and of the weights
_STREAMED, _FEW, _NARROW = (
    8,
    16,
    32,
)  # columns that weights are read once for, that are streamed at most, of a narrow tile
_NEVER = 1e9  # seconds: of an algorithm that does not do a shape
# What cuDNN 9.14 launches on an H200: each step a product and the gates' functions, and for all steps of a layer
# products of its input and weights, and copies.
_KERNELS_A_STEP, _KERNELS_FORWARD, _KERNELS_BACK = 2, 8, 18


@dataclass(frozen=True, slots=True)
class Recurrence:
    """Record of a layer in one direction: its gates (an LSTM has 4, a GRU 3), hidden units, batch and time steps."""

    gates: Numbers
    hidden: Numbers
    batch: Numbers
    steps: Numbers


@dataclass(frozen=True, slots=True)
class RecurrentLayers:
    """Record of what a CudnnRNN op computes: `widths` of each layer's input, `directions` of each layer (1 or 2)."""

    gates: int
    hidden: int
    batch: int
    steps: int
    widths: tuple[int, ...]
    directions: int
    is_gradient: bool


def time_recurrence(plan: ProductPlan, layer: Recurrence, kind: RecurrentPass) -> KernelTime:
    """Return the time of a layer without the product of its input; the plan's constants hold those of "rnn", too."""
    c, floor_s = plan.c, plan.c["floor_s"]
    high = layer.gates * layer.hidden
    if kind == "weights":
        whole = time_product(plan, 1.0, high, layer.hidden, layer.batch * layer.steps)
        added = c["weights_adds"] * high * layer.hidden
        more_s = plan.width * added / plan.bandwidth + c["weights_helper_s"]
        seconds = (whole.seconds - floor_s) / c["weights"] + more_s + floor_s
        return KernelTime(seconds, whole.arithmetic, whole.memory, c["weights_helper_s"] + floor_s)
    rows, deep = (high, layer.hidden) if kind == "forward" else (layer.hidden, high)
    step = time_product(plan, 1.0, rows, layer.batch, deep)
    tiled_s = (step.seconds - floor_s) / blend(plan.gpu.is_early, c["step"], 1.0) + _wait_for_sums(plan, layer, deep)
    more_s = floor_s + c["step_s"]
    step_s = smaller(tiled_s, _stream_weights(plan, layer, rows * deep)) + more_s
    return KernelTime(
        step_s * layer.steps, step.arithmetic * layer.steps, step.memory * layer.steps, more_s * layer.steps
    )  # fmt: skip


def _wait_for_sums(plan: ProductPlan, layer: Recurrence, deep: Numbers) -> Numbers:
    """Return the seconds that blocks of a narrow tile wait for memory, one element of the sum after the other."""
    is_narrow = (layer.batch > _FEW) * (layer.batch <= _NARROW)
    return plan.gpu.is_early * is_narrow * plan.c["wait_clocks"] * deep / plan.gpu.clock


def _stream_weights(plan: ProductPlan, layer: Recurrence, weights: Numbers) -> Numbers:
    """Return the seconds of reading the weights for some columns at a time; very many for large batches."""
    passes = -(-layer.batch // _STREAMED)
    return passes * plan.width * weights / (plan.bandwidth * plan.c["stream"]) + _NEVER * (layer.batch > _FEW)


def count_launches(layers: RecurrentLayers) -> int:
    """Return how many kernels cuDNN launches for layers.

    >>> count_launches(RecurrentLayers(4, 512, 64, 100, (128,), 1, is_gradient=True))
    218
    """
    each = _KERNELS_A_STEP * layers.steps + (_KERNELS_BACK if layers.is_gradient else _KERNELS_FORWARD)
    return each * layers.directions * len(layers.widths)


def time_layers(products: ProductPlan, steps: ProductPlan, layers: RecurrentLayers) -> KernelTime:
    """Return the time of layers one after the other, and both directions too, with the products of their inputs."""
    one = Recurrence(float(layers.gates), float(layers.hidden), float(layers.batch), float(layers.steps))
    kinds: tuple[RecurrentPass, ...] = ("input", "weights") if layers.is_gradient else ("forward",)
    high, columns = one.gates * one.hidden, one.batch * one.steps
    parts = [time_recurrence(steps, one, kind) for kind in kinds] * len(layers.widths)
    for width in map(float, layers.widths):
        parts.append(time_product(products, 1.0, width if layers.is_gradient else high, columns,
                                  high if layers.is_gradient else width))  # fmt: skip
        if layers.is_gradient:
            parts.append(time_product(products, 1.0, high, width, columns))
    ways = layers.directions
    return KernelTime(
        ways * sum(part.seconds for part in parts), ways * sum(part.arithmetic for part in parts),
        ways * sum(part.memory for part in parts), ways * sum(part.floor for part in parts),
    )  # fmt: skip
