"""Fit the constants of the GPU cost model to measurements, and write them down.

Least squares of the logarithm of predicted over measured, by Levenberg and Marquardt with differences for derivatives;
residuals beyond a few percent count by their size, not its square, since tables of measurements have outliers. Every
GPU counts alike in a class up to the square root of its rows, so that no card's many rows decide alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from benchmarks.costs_data import Measured
from simplace.costs.gpu_convolutions import Convolution, Pass, time_convolution
from simplace.costs.gpu_kernels import ProductPlan, plan_products, time_product, time_rows, time_traffic
from simplace.costs.gpu_recurrences import Recurrence, RecurrentPass, time_recurrence

_KNEE = 0.05  # residuals above it count by their size
_WEIGHTS = {"gemm_fp32": 0.3}  # of old libraries, and cut to whole microseconds


@dataclass(frozen=True, slots=True)
class Parameter:
    """Record of a constant to fit: where it starts, its bounds, and how sure its start is (None: not at all)."""

    start: float
    low: float
    high: float
    sigma: float | None = None


P = Parameter
# `event_s`: what a pair of CUDA events and the launch by PyTorch add to a kernel alone on the GPU: a constant of how
# NeuSight measured, not of the kernel.
GROUPS: Mapping[str, Mapping[str, Parameter]] = {
    "traffic": {
        "hbm": P(0.88, 0.5, 1), "gddr": P(0.76, 0.5, 1), "event_s": P(8e-6, 1e-6, 2e-5, 0.5),
    },
    "rows": {
        "softmax_blocks": P(2, 0.5, 16, 1.0), "softmax_l2": P(0.3, 0.01, 4), "softmax_slope": P(3, 1, 8),
        "softmax_again": P(2, 0, 4), "softmax_cached": P(0.2, 0, 2), "softmax_short": P(50, 0, 800),
        "norm_blocks": P(16, 2, 32, 1.0), "norm_l2": P(0.5, 0.05, 4), "norm_slope": P(3, 1, 8),
        "norm_again": P(1, 0, 2), "norm_cached": P(0.1, 0, 1), "norm_short": P(100, 0, 800),
    },
    "simt": {
        "reach": P(0.96, 0.8, 1.0), "flops_per_watt": P(65e9, 20e9, 2e11, 0.1),
        "flops_per_watt_old": P(56e9, 20e9, 2e11, 0.1),
        "tile_128x128": P(1, 0.9, 1), "tile_128x64": P(0.6, 0.3, 1), "tile_64x128": P(0.6, 0.3, 1),
        "tile_64x64": P(0.5, 0.2, 1),
        "tile_128x128_old": P(1, 0.9, 1), "tile_128x64_old": P(0.8, 0.3, 1), "tile_64x128_old": P(0.8, 0.3, 1),
        "tile_64x64_old": P(0.7, 0.2, 1), "tile_128x32": P(0.7, 0.05, 0.9),
        "quantum": P(0.5, 0, 1), "extra_k": P(16, 0, 100), "alone": P(0.2, 0, 0.5), "l2_bytes": P(40, 8, 128, 1.0),
        "split_s": P(3e-6, 0, 2e-5, 1.0), "overlap": P(4, 1.5, 12),
        "pages": P(16000, 4000, 100000), "pages_early": P(2000, 500, 20000),
        "pages_k": P(20000, 2000, 60000), "pages_k_early": P(12000, 2000, 60000),
    },
    "tensor": {
        "reach": P(0.95, 0.8, 1.0), "tile_256x128": P(1, 0.8, 1), "tile_128x128": P(0.9, 0.4, 1),
        "tile_64x128": P(0.6, 0.2, 1),
        "tile_64x64": P(0.5, 0.1, 1), "tile_16x64": P(0.2, 0.02, 1), "quantum": P(0.8, 0, 1), "extra_k": P(64, 0, 600),
        "alone": P(0.2, 0, 0.5), "l2_bytes": P(50, 8, 128, 1.0), "split_s": P(2e-6, 0, 2e-5, 1.0),
        "overlap": P(3, 1.5, 12),
        "floor_s": P(2.3e-6, 1e-6, 4e-6),
    },
    "conv": {
        "forward": P(0.8, 0.2, 1.2), "input": P(0.7, 0.1, 1.2), "filter": P(0.6, 0.1, 1.2), "scatter": P(0.5, 0.05, 2),
        "winograd": P(0.6, 0.1, 1.2), "winograd_apart": P(0.8, 0.1, 1.2), "transform": P(0.8, 0.1, 1.5),
        "tile_128x32": P(0.8, 0.05, 1), "filters": P(4, 0, 12), "forward_helper_s": P(1e-5, 0, 1e-4),
        "input_helper_s": P(1e-5, 0, 1e-4), "filter_helper_s": P(2e-5, 0, 1e-4),
    },
    "rnn": {
        "step": P(0.5, 0.1, 1.2), "weights": P(0.9, 0.3, 1.2), "wait_clocks": P(100, 0, 400),
        "stream": P(0.9, 0.3, 1.3), "step_s": P(1e-5, 0, 5e-5), "tile_128x32": P(0.6, 0.05, 1),
        "weights_adds": P(2, 0, 8), "weights_helper_s": P(2e-5, 0, 1e-4),
    },
}  # fmt: skip
FIXED: Mapping[str, Mapping[str, float]] = {
    "traffic": {"floor_s": 2.3e-6},
    "simt": {"wide_sm": 0.8},
    "rnn": {"step_s_cudnn9": 4e-6},  # measured with cuDNN 9.14 on an H200
    # The A100 SXM was measured at 96 % of its peak within its 400 W, the V100 SXM at 87 % within 300 W.
    "tensor": {"wide_sm": 0.95, "flops_per_watt": 312e12 / 400, "flops_per_watt_old": 125e12 / 300},
}
PRODUCTS = ("bmm", "linear", "gemm_fp32", "gemm_bf16", "gemm_fp16")
FITTED_TO: Mapping[str, tuple[str, ...]] = {
    "traffic": ("elementwise",), "rows": ("softmax", "layer_norm"), "simt": ("bmm", "linear", "gemm_fp32"),
    "tensor": ("gemm_bf16",), "conv": ("conv_forward", "conv_input", "conv_filter"),
    "rnn": ("rnn_forward", "rnn_input", "rnn_weights"),
}  # fmt: skip
Constants = dict[str, dict[str, float]]


def start_constants() -> Constants:
    """Return where a fit starts."""
    return {
        group: {**FIXED.get(group, {}), **{name: one.start for name, one in parameters.items()}}
        for group, parameters in GROUPS.items()
    }


def predict_seconds(constants: Constants, data: Measured) -> np.ndarray:
    """Return the modelled time of each row, with what the way of measuring adds."""
    s, traffic = data.sizes, constants["traffic"]
    if data.operator in PRODUCTS:
        on_tensor_cores = data.operator in ("gemm_bf16", "gemm_fp16")
        group = {**traffic, **constants["tensor" if on_tensor_cores else "simt"]}
        plan = plan_products(data.figures, group, data.peaks, 2 if on_tensor_cores else 4, on_tensor_cores)
        found = time_product(plan, s["b"], s["m"], s["n"], s["k"], s["along_k"])
        return found.seconds + (traffic["event_s"] if data.operator in ("bmm", "linear") else 0.0)
    if data.operator.startswith("conv"):
        return _predict_convolutions(constants, data)
    if data.operator.startswith("rnn"):
        return _predict_recurrences(constants, data)
    if data.operator == "elementwise":
        bytes_ = 4 * s["rows"] * s["cols"] * (1 + s["inputs"])
        return time_traffic(data.figures, traffic, bytes_).seconds + traffic["event_s"]
    kind = "softmax" if data.operator == "softmax" else "norm"
    rows = {**traffic, **constants["rows"]}
    return time_rows(data.figures, rows, s["rows"], s["cols"], 4, kind).seconds + traffic["event_s"]


def _predict_convolutions(constants: Constants, data: Measured) -> np.ndarray:
    plan, on_tensor_cores = _plan_with(constants, data, "conv")
    shape = Convolution(**{name: data.sizes[name] for name in Convolution._fields})
    kinds: dict[str, Pass] = {"forward": "forward", "input": "input", "filter": "filter"}
    return np.asarray(time_convolution(plan, shape, kinds[data.operator.rpartition("_")[2]], on_tensor_cores).seconds)


def _predict_recurrences(constants: Constants, data: Measured) -> np.ndarray:
    plan, _ = _plan_with(constants, data, "rnn")
    shape = Recurrence(**{field.name: data.sizes[field.name] for field in fields(Recurrence)})
    kinds: dict[str, RecurrentPass] = {"forward": "forward", "input": "input", "weights": "weights"}
    return np.asarray(time_recurrence(plan, shape, kinds[data.operator.rpartition("_")[2]]).seconds)


def _plan_with(constants: Constants, data: Measured, group: str) -> tuple[ProductPlan, bool]:
    """Return a plan for products with a group's own constants before theirs, and whether it is for tensor cores."""
    is_half = "_fp16_" in data.operator
    product = constants["tensor" if is_half else "simt"]
    joined = {**constants["traffic"], **product, **constants[group]}
    return plan_products(data.figures, joined, data.peaks, 2 if is_half else 4, is_half), is_half


def fit_constants(data: Mapping[str, Measured], known: Constants | None = None, without: str = "") -> Constants:
    """Fit all groups of constants, memory first, since the others build on its bandwidth.

    `known` is the fit to all GPUs and `without` the one that is to be left out: groups that none of its rows has a say
    in are taken over as they are.
    """
    constants, all_anew = start_constants(), known is None
    for group, operators in FITTED_TO.items():
        parts = [data[name] for name in operators if name in data]
        has_say = any(without in part.gpus for part in parts)
        all_anew = all_anew or (group == "traffic" and has_say)
        if known is not None and not (all_anew or has_say):
            constants = {**constants, group: known[group]}
            continue
        parts = [part.select(part.gpus != without) for part in parts]
        parts = [part for part in parts if len(part.seconds)]
        if parts:
            constants = {**constants, group: _fit_group(constants, group, parts)}
    return constants


def _fit_group(constants: Constants, group: str, parts: Sequence[Measured]) -> dict[str, float]:
    names = list(GROUPS[group])
    fitted = [GROUPS[group][name] for name in names]
    weights = np.concatenate([_weigh_rows(part.gpus) * _WEIGHTS.get(part.operator, 1) for part in parts])
    weights /= weights.sum()

    def residuals(at: np.ndarray) -> np.ndarray:
        tried = {**constants, group: {**constants[group], **dict(zip(names, at.tolist(), strict=True))}}
        return np.concatenate([np.log(predict_seconds(tried, part) / part.seconds) for part in parts])

    start = np.array([constants[group][name] for name in names])
    found = minimise_robustly(residuals, start, fitted, weights)
    return {**constants[group], **dict(zip(names, found.tolist(), strict=True))}


def _weigh_rows(gpus: np.ndarray) -> np.ndarray:
    kinds, where, counts = np.unique(gpus, return_inverse=True, return_counts=True)
    return np.sqrt(len(gpus) / len(kinds) / counts[where])


def minimise_robustly(
    residuals: Callable[[np.ndarray], np.ndarray], start: np.ndarray, parameters: Sequence[Parameter],
    weights: np.ndarray, steps: int = 24,
) -> np.ndarray:  # fmt: skip
    """Return where the weighted residuals are least in size, within the bounds of the parameters."""
    low, high = (np.array([getattr(one, end) for one in parameters]) for end in ("low", "high"))
    scale = np.array([max(abs(one.start), one.high * 1e-3) for one in parameters])
    prior = np.array([0.0 if one.sigma is None else 1e-3 / (one.sigma * one.start) ** 2 for one in parameters])
    centre = np.array([one.start for one in parameters])

    def loss(at: np.ndarray, found: np.ndarray) -> float:
        return float(weights @ np.sqrt(found**2 + _KNEE**2) + prior @ (at - centre) ** 2)

    at, damping = start.copy(), 1e-2
    found = residuals(at)
    best = loss(at, found)
    for _ in range(steps):
        slopes = np.empty((len(found), len(at)))
        for i in range(len(at)):
            moved = at.copy()
            step = 1e-3 * scale[i] * (1 if at[i] + 1e-3 * scale[i] <= high[i] else -1)
            moved[i] += step
            slopes[:, i] = (residuals(moved) - found) / step * scale[i]
        heavy = weights / np.sqrt(found**2 + _KNEE**2)
        curvature = slopes.T @ (slopes * heavy[:, None]) + np.diag(2 * prior * scale**2)
        downhill = slopes.T @ (found * heavy) + 2 * prior * scale * (at - centre)
        before = best
        free = ~(((at <= low) & (downhill > 0)) | ((at >= high) & (downhill < 0)))
        for _try in range(8):
            bent = curvature + damping * np.diag(np.diag(curvature) + 1e-6)
            change = np.zeros(len(at))
            change[free] = np.linalg.solve(bent[np.ix_(free, free)], -downhill[free])
            tried = np.clip(at + change * scale, low, high)
            new = residuals(tried)
            value = loss(tried, new)
            if value < best:
                at, found, best, damping = tried, new, value, max(damping / 5, 1e-6)
                break
            damping *= 5
        if before - best < 1e-6 * before:
            break
    return at
