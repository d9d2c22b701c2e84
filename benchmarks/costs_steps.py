"""Predict whole measured steps of transformers, on one GPU and on several, op by op with a cost model.

A GPU runs its ops one after the other; the host launches them, ahead of the GPU or not: an op starts when it has been
launched and the one before it has ended, as in the simulated executor. Collectives are priced like any op.

- Data parallelism: gradients are summed while the backward pass still runs, and what is left of it afterwards; the sum
  of the last bucket (25 MB, of torch.nn.parallel.DistributedDataParallel) has nothing to hide behind.
- Tensor parallelism: two sums of activations a layer in each pass, with nothing beside them (Megatron-LM).
- Pipelines: one pass forward and one back (1F1B, Narayanan et al., SC 2021): all stages for one micro-batch, and the
  slowest stage for each of the others. Activations are sent in between.
- Activation checkpointing: the forward pass of a layer runs again before its backward pass.
- torch.compile: elementwise ops are fused, as `simplace.costs.xla_fusion` says of XLA.
- A step with an optimizer: gradients are summed over replicas, their norm is taken, and Adam updates the weights.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.step_models import LAYERS, Call, OpList, Transformer, add_inputs, add_outputs
from simplace.costs.cost_model import CollectiveCall, CostModel, OpCall
from simplace.costs.gpu_constants import GpuConstants
from simplace.costs.hardware import find_hardware
from simplace.costs.modelled_costs import make_modelled_costs
from simplace.costs.op_work import make_tensor
from simplace.costs.roofline import Roofline
from simplace.costs.xla_fusion import OUTSIDE, ClusterOp, fuse_ops

_BUCKET = 25 << 20
_HOST_STEPS = tuple(microseconds * 1e-6 for microseconds in range(40, 104, 4))
_MEGATRON_GPU = "NVIDIA A100-SXM4-80GB"  # the source says "A100"; GPUs are joined by NVSwitch, so it is the SXM form


@dataclass(frozen=True, slots=True)
class MeasuredStep:
    """Record of a measured step.

    `mode` is "infer", "train" (forward and backward) or "iteration" (with the optimizer). `tensor`, `data` and
    `pipeline` are the ways of each parallelism; `batch` is what a replica takes at once, `micro_batches` how often.
    """

    source: str
    gpu: str
    name: str
    mode: str
    model: Transformer
    batch: int
    seq: int
    seconds: float
    dtype: str = "float32"
    tensor: int = 1
    data: int = 1
    pipeline: int = 1
    micro_batches: int = 1
    is_compiled: bool = False

    @property
    def gpus(self) -> int:
        """Return how many GPUs took part."""
        return self.tensor * self.data * self.pipeline


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
            *(make_modelled_costs(one[0].gpu, constants=constants, allows_tf32=False)
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
    if steps[0].mode != "iteration":
        predictor = StepPredictor(costs)
        return [predictor.predict(step) for step in steps]
    measured = np.array([step.seconds for step in steps])
    tried = np.array([[one.predict(step) for step in steps] for one in (StepPredictor(costs, h) for h in _HOST_STEPS)])
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


class StepPredictor:
    """Predict steps with a cost model; `host_s` is what launching an op takes the framework, None for the model's."""

    def __init__(self, costs: CostModel, host_s: float | None = None) -> None:
        self.costs = costs
        self.host_s = host_s
        self._known: dict[Any, tuple[float, float]] = {}
        self._list = cache(_list_parts)

    def predict(self, step: MeasuredStep) -> float:
        """Return the seconds of a step."""
        first, layers, last = self._list(step.model, step.batch, step.seq, step.mode, step.dtype, step.tensor)
        if step.mode == "infer":
            calls = [*first.forward, *layers.forward, *last.forward]
            return self.run(_fuse_chain(calls) if step.is_compiled else calls)
        if step.mode == "train":
            return self._train(step, first, layers, last)
        return self._iterate(step, first, layers, last)

    def run(self, calls: Iterable[Call]) -> float:
        """Return when a GPU has run ops that the host launches one after the other."""
        priced = np.array([self._price(call) for call in calls])
        launched, lasts = np.cumsum(priced[:, 0]), priced[:, 1]
        left = np.cumsum(lasts[::-1])[::-1]  # from the start of each op, if nothing waits any more
        return float((launched + left).max())

    def _price(self, call: Call) -> tuple[float, float]:
        """Return the seconds of a call on the host and on the GPU."""
        is_op = isinstance(call, OpCall)
        key = (call.op, call.inputs, call.outputs, tuple(sorted(call.attrs.items()))) if is_op else call
        if key not in self._known:
            self._known[key] = self._price_anew(call)
        return self._known[key]

    def _price_anew(self, call: Call) -> tuple[float, float]:
        cost = self.costs.collective(call) if isinstance(call, CollectiveCall) else self.costs.kernel(call)
        is_own = self.host_s is None or isinstance(call, CollectiveCall)
        return cost.host_s + self.costs.overheads.op_s if is_own else self.host_s, cost.device_s

    def _sum_gradients(self, size: int, ways: int) -> float:
        return self._price(CollectiveCall("all_reduce", size, ways, "GPU"))[1] if ways > 1 and size else 0.0

    def _train(self, step: MeasuredStep, first: OpList, layers: OpList, last: OpList) -> float:
        forward = self.run([*first.forward, *layers.forward, *last.forward])
        backward = self.run([*last.backward, *layers.backward, *first.backward])
        sent = 4 * _count_weights(step, step.model.layers)
        whole, end = self._sum_gradients(sent, step.data), self._sum_gradients(min(_BUCKET, sent), step.data)
        moved = 2 * (step.pipeline - 1) * self._send(step)
        return forward + max(backward + end, whole) + moved

    def _send(self, step: MeasuredStep) -> float:
        width = 2 if step.dtype == "float16" else 4
        return self.costs.copy(width * step.batch * step.seq * step.model.hidden, "GPU", "GPU")

    def _iterate(self, step: MeasuredStep, first: OpList, layers: OpList, last: OpList) -> float:
        """Return the seconds of micro-batches through a pipeline, the sums of gradients and the update."""
        repeated = step.model.layers // step.pipeline
        one = LAYERS[step.model.kind]
        layer = OpList(step.dtype, True, step.tensor)
        one(layer, step.model, step.batch, step.seq, 0)
        middle = [*layer.forward * repeated, *([*layer.forward, *layer.backward] * repeated)]
        begin, end = [*first.forward, *first.backward], [*last.forward, *last.backward]
        stages: list[list[Call]] = [list(middle) for _ in range(step.pipeline)]
        stages[0] = [*begin, *stages[0]]
        stages[-1] = [*stages[-1], *end]
        times = [self.run(stage) for stage in stages]
        sends = 2 * (self._send(step) if step.pipeline > 1 else 0.0)
        waves = sum(times) + (step.pipeline - 1) * sends + (step.micro_batches - 1) * (max(times) + sends)
        weights = _count_weights(step, repeated)
        shared = 2 * step.model.vocabulary * step.model.hidden // step.tensor if step.pipeline > 1 else 0
        sums = self._sum_gradients(2 * weights, step.data) + self._sum_gradients(shared, 2)
        return waves + sums + self.run(_list_updates(weights, step.data * step.tensor * step.pipeline))


def _list_parts(
    model: Transformer, batch: int, seq: int, mode: str, dtype: str, ways: int
) -> tuple[OpList, OpList, OpList]:
    """Return the ops before, of and after all layers; a whole iteration has its loss at the end."""
    first, layers, last = (OpList(dtype, mode != "infer", ways) for _ in range(3))
    add_inputs(first, model, batch, seq)
    for layer in range(model.layers):
        LAYERS[model.kind](layers, model, batch, seq, layer)
    add_outputs(last, model, batch, seq)
    if mode == "iteration":
        _add_loss(last, batch * seq, model.vocabulary // ways)
    return first, layers, last


def _fuse_chain(calls: Sequence[Call]) -> list[OpCall]:
    """Return the kernels of a compiled pass, as if XLA had fused it: PyTorch's Inductor fuses alike.

    Each op reads what the one before made where that has its shape; whatever else it reads is in memory.
    """
    ops: list[ClusterOp] = []
    memory: dict[Any, int] = {}
    for call in (one for one in calls if isinstance(one, OpCall)):
        before = ops[-1].call.outputs[0] if ops else None
        producers = [(OUTSIDE, memory.setdefault(tensor, len(memory))) for tensor in call.inputs]
        if producers and call.inputs[0] == before:
            producers[0] = (len(ops) - 1, 0)
        ops.append(ClusterOp(call, tuple(producers)))
    return fuse_ops(ops, [(len(ops) - 1, 0)])


def _add_loss(ops: OpList, tokens: int, wide: int) -> None:
    """Add Megatron-LM's cross entropy in float32, of which each GPU has a part of the vocabulary."""
    single, shape = OpList("float32", True, ops.ways), (tokens, wide)
    ops.run(_cast(shape, "float16", "float32"), _cast(shape, "float32", "float16"))
    for op in ("Max", "Sub", "Exp", "Sum", "RealDiv"):  # only the last has a gradient of its own: one pass
        made = (tokens,) if op in ("Max", "Sum") else shape
        call = single.call(op, (shape,), made)
        ops.run(call, *([single.call("Mul", (shape,), shape)] if op == "RealDiv" else []))
        if len(made) == 1:
            ops.sum_up((2, tokens))
    ops.sum_up((2, tokens))


def _cast(shape: tuple[int, ...], source: str, target: str) -> OpCall:
    width = {"float16": 2, "float32": 4}
    tensors = [make_tensor(dtype, shape, width[dtype]) for dtype in (source, target)]
    return OpCall("", "Cast", "GPU", {}, (tensors[0],), (tensors[1],))


def _list_updates(weights: int, gpus: int) -> list[Call]:
    """Return the ops after the backward pass: the gradients' norm over all GPUs, and Adam on float32 weights."""
    half, single = make_tensor("float16", (weights,), 2), make_tensor("float32", (weights,), 4)
    norm = OpCall("", "L2Loss", "GPU", {}, (single,), (make_tensor("float32", (), 4),))
    # The weights themselves are a resource in TensorFlow: what is read of them comes on top of the inputs.
    adam = OpCall("", "ResourceApplyAdam", "GPU", {}, (single, single, half), (single, single, single, half))
    agreed = [CollectiveCall("all_reduce", 4, gpus, "GPU")] if gpus > 1 else []
    return [_cast((weights,), "float16", "float32"), norm, *agreed, adam]


def _count_weights(step: MeasuredStep, layers: int) -> int:
    """Return the weights of some layers and of a vocabulary that one GPU holds."""
    model = step.model
    layer = 4 * model.hidden * model.heads * model.size + 2 * model.hidden * model.inner
    return (layers * layer + model.vocabulary * model.hidden) // step.tensor
