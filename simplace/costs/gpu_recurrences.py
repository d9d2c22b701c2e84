"""How long cuDNN's recurrent layers take on a GPU: a product each time step, which waits for the step before.

As `gpu_kernels`, the formulas take floats and numpy arrays alike. A step multiplies the weights of all gates (gates x
hidden by hidden) with the states of a batch, then the gates' functions run over the results; the gradient through time
does the same backwards, with the weights turned. The weights are read again in each step. The gradient of the weights
is one product over all steps. That is cuDNN's standard algorithm; its persistent ones, which keep weights in registers,
are not modelled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from simplace.costs.gpu_kernels import KernelTime, Numbers, ProductPlan, time_product

RecurrentPass = Literal["forward", "input", "weights"]  # and the gradients through time, and of the weights


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
    high, one = layer.gates * layer.hidden, layer.hidden * 0.0 + 1
    if kind == "weights":
        whole = time_product(plan, one, high, layer.hidden, layer.batch * layer.steps)
        return KernelTime((whole.seconds - floor_s) / c["weights"] + floor_s, whole.arithmetic, whole.memory, floor_s)
    rows, deep = (high, layer.hidden) if kind == "forward" else (layer.hidden, high)
    step = time_product(plan, one, rows, layer.batch, deep)
    step_s = (step.seconds - floor_s) / c["step"] + floor_s + c["step_s"]
    return KernelTime(
        step_s * layer.steps, step.arithmetic * layer.steps, step.memory * layer.steps,
        (floor_s + c["step_s"]) * layer.steps,
    )  # fmt: skip


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
