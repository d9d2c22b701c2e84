"""Judge the cost model by whole measured steps of transformers, with the constants that a fit without the GPU found."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.step_models import Transformer
from benchmarks.step_prediction import MeasuredStep, StepPredictor
from simplace.costs.cost_model import CostModel
from simplace.costs.gpu_constants import GpuConstants
from simplace.costs.hardware import find_hardware
from simplace.costs.modelled_costs import make_modelled_costs
from simplace.costs.roofline import Roofline

_HOST_STEPS = tuple(microseconds * 1e-6 for microseconds in range(40, 104, 4))
_MEGATRON_GPU = "NVIDIA A100-SXM4-80GB"  # the source says "A100"; GPUs are joined by NVSwitch, so it is the SXM form


def read_steps(folder: Path) -> list[MeasuredStep]:
    """Return the measured steps of a folder: NeuSight's models, then vTrain's iterations."""
    found = []
    for row in _read_rows(folder / "neusight-models/runs.csv"):
        found.append(_read_run(row, folder / "neusight-models/model_configs"))
    for row in _read_rows(folder / "vtrain/iterations.csv"):
        found.append(_read_iteration(row))
    return found


def _read_rows(path: Path) -> Iterator[Mapping[str, str]]:
    if path.exists():
        with path.open(encoding="utf-8", newline="") as file:
            yield from csv.DictReader(file)


def _read_run(row: Mapping[str, str], configs: Path) -> MeasuredStep:
    values = json.loads((configs / f"{row['model']}.json").read_text(encoding="utf-8"))
    model, gpus = _read_model(values), int(row["gpus"])
    ways = {row["parallelism"]: gpus}
    if gpus > 1:
        model = replace(model, kind="megatron")
    data = ways.get("data", 1)
    return MeasuredStep(
        "neusight-models", row["gpu"], row["model"], row["mode"], model, int(row["batch"]) // data, int(row["seq"]),
        float(row["seconds"]), tensor=ways.get("tensor", 1), data=data, pipeline=ways.get("pipeline", 1),
        is_compiled=row["compiled"] == "1",
    )  # fmt: skip


def _read_model(values: Mapping[str, Any]) -> Transformer:
    """Return the dimensions of a model from a description in Hugging Face's format."""
    if values["model_type"] == "switch_transformers":
        layers = values["num_layers"] + values["num_decoder_layers"]
        return Transformer("switch", layers, values["d_model"], values["num_heads"], values["d_ff"],
                           values["vocab_size"], values["d_kv"])  # fmt: skip
    hidden = values.get("hidden_size") or values["n_embd"]
    heads = values.get("num_attention_heads") or values["n_head"]
    layers = values.get("num_hidden_layers") or values["n_layer"]
    inner = values.get("intermediate_size") or values.get("ffn_dim") or 4 * hidden
    return Transformer(values["model_type"], layers, hidden, heads, inner, values["vocab_size"], hidden // heads)


def _read_iteration(row: Mapping[str, str]) -> MeasuredStep:
    hidden, heads, micro = int(row["hidden"]), int(row["heads"]), int(row["micro_batch"])
    data = int(row["data_parallel"])
    model = Transformer("megatron", int(row["layers"]), hidden, heads, 4 * hidden, 50257, hidden // heads)
    return MeasuredStep(
        "vtrain", _MEGATRON_GPU, "gpt", "iteration", model, micro, int(row["seq"]), float(row["seconds"]), "float16",
        int(row["tensor_parallel"]), data, int(row["pipeline_parallel"]), int(row["global_batch"]) // data // micro,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class JudgedStep:
    """Record of a measured step and of what was predicted, in seconds.

    By the roofline of the data sheet, by the constants fitted without the step's GPU, and by those on file.
    """

    step: MeasuredStep
    roofline: float
    left_out: float
    shipped: float


def judge_steps(
    steps: Sequence[MeasuredStep], fits: Mapping[str, GpuConstants], shipped: GpuConstants
) -> list[JudgedStep]:
    """Predict steps; `fits` are the constants by the GPU that they were fitted without."""
    judged = []
    for one in _group_alike(steps):
        costs = (
            Roofline(find_hardware(one[0].gpu), allows_tf32=False),
            *(make_modelled_costs(one[0].gpu, constants=constants, allows_tf32=False, has_own_kernels=False)
              for constants in (fits.get(one[0].gpu, shipped), shipped)),
        )  # fmt: skip
        predicted = [_predict_group(one, model) for model in costs]
        judged += [JudgedStep(*row) for row in zip(one, *predicted, strict=True)]
    return judged


def _group_alike(steps: Sequence[MeasuredStep]) -> list[list[MeasuredStep]]:
    groups: dict[tuple[str, str], list[MeasuredStep]] = {}
    for step in steps:
        groups.setdefault((step.source, step.gpu), []).append(step)
    return list(groups.values())


def _predict_group(steps: Sequence[MeasuredStep], costs: CostModel) -> list[float]:
    """Predict the steps of one source on one GPU.

    Iterations are bound by what the framework's host does for each op, in more than half of them. That is no figure of
    a GPU: it is taken from the other parallelisms of the same table, for each of them.
    """
    predictor = StepPredictor(costs)
    if steps[0].mode != "iteration":
        return [predictor.predict(step) for step in steps]
    measured = np.array([step.seconds for step in steps])
    tried = np.array([[predictor.predict(step, host_s) for step in steps] for host_s in _HOST_STEPS])
    off = np.abs(tried / measured - 1)
    ways = np.array([f"{step.tensor} {step.data} {step.pipeline}" for step in steps])
    found = np.empty(len(steps))
    for own in np.unique(ways):
        best = off[:, ways != own].mean(axis=1).argmin()
        found[ways == own] = tried[best, ways == own]
    return [float(one) for one in found]


def tabulate_steps(judged: Sequence[JudgedStep]) -> Iterator[str]:
    """Yield tables of the mean errors, by GPU and by model."""
    if not judged:
        return
    yield "\nWhole steps, predicted op by op. The constants were fitted without the GPU of the row.\n"
    yield from _tabulate_groups("mode | GPU", judged, lambda one: (_MODES[one.step.mode], _name_machine(one.step)))
    singles = [one for one in judged if one.step.gpus == 1 and not one.step.is_compiled]
    yield "\nOn one GPU, by model.\n"
    yield from _tabulate_groups("mode | model", singles, lambda one: (_MODES[one.step.mode], one.step.name))
    several = [one for one in judged if one.step.mode == "iteration"]
    if several:
        yield "\nGPT iterations (vTrain), by the ways of tensor, data and pipeline parallelism.\n"
        yield from _tabulate_groups(
            "GPUs | tensor x data x pipeline", several,
            lambda one: (str(one.step.gpus), f"{one.step.tensor} x {one.step.data} x {one.step.pipeline}"),
        )  # fmt: skip


_MODES = {"infer": "inference", "train": "training", "iteration": "iteration"}


def _name_machine(step: MeasuredStep) -> str:
    name = step.gpu if step.gpus == 1 else f"2 to 8 {step.gpu}" if step.mode == "iteration" else f"4 {step.gpu}"
    return f"{name}, torch.compile" if step.is_compiled else name


def _tabulate_groups(
    heads: str, judged: Sequence[JudgedStep], key: Callable[[JudgedStep], tuple[str, str]]
) -> Iterator[str]:
    yield f"| {heads} | steps | roofline | model, GPU left out | median of predicted/measured | as shipped |"
    yield "|---|---|---|---|---|---|---|"
    groups: dict[tuple[str, str], list[JudgedStep]] = {}
    for one in judged:
        groups.setdefault(key(one), []).append(one)
    for (first, second), chosen in sorted(groups.items()):
        yield f"| {first} | {second} | {_format_errors(chosen)} |"
    for first in sorted({first for first, _ in groups}) if len(groups) > 1 else ():
        chosen = [one for group, parts in groups.items() if group[0] == first for one in parts]
        yield f"| {first} | all | {_format_errors(chosen)} |"


def _format_errors(chosen: Sequence[JudgedStep]) -> str:
    measured = np.array([one.step.seconds for one in chosen])
    ratios = {name: np.array([getattr(one, name) for one in chosen]) / measured
              for name in ("roofline", "left_out", "shipped")}  # fmt: skip
    errors = {name: f"{np.abs(ratio - 1).mean():.1%}" for name, ratio in ratios.items()}
    middle = f"{np.median(ratios['left_out']):.2f}"
    return f"{len(chosen):,} | {errors['roofline']} | {errors['left_out']} | {middle} | {errors['shipped']}"
