"""Predict whole steps of transformers, on one GPU and on several, op by op with a cost model.

A GPU runs its ops one after the other; the host launches them, ahead of the GPU or not: an op starts when it has been
launched and the one before it has ended, as in the simulated executor. Collectives are estimated like any op.

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

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from benchmarks.step_models import LAYERS, Transformer, add_inputs, add_outputs
from benchmarks.step_ops import Call, OpList
from simplace.costs.cost_model import CollectiveCall, CostModel, OpCall
from simplace.costs.op_work import make_tensor
from simplace.costs.xla_fusion import OUTSIDE, ClusterOps, FusibleOp, fuse_ops

_BUCKET = 25 << 20


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


@dataclass(frozen=True, slots=True)
class EstimatedCalls:
    """Record of calls with their seconds on the host and on the GPU; `is_op` is False for collectives."""

    host_s: np.ndarray
    device_s: np.ndarray
    is_op: np.ndarray

    def run(self, op_s: float | None) -> float:
        """Return when a GPU has run the calls that the host launches in turn, each op in `op_s` (None: its own)."""
        launched = np.cumsum(self.host_s if op_s is None else np.where(self.is_op, op_s, self.host_s))
        left = np.cumsum(self.device_s[::-1])[::-1]  # from the start of each op, if nothing waits any more
        return float((launched + left).max())


class StepPredictor:
    """Predict steps with a cost model; what is estimated once is kept for all steps."""

    def __init__(self, costs: CostModel) -> None:
        self.costs = costs
        self._known: dict[Any, tuple[float, float]] = {}
        self._list = cache(_list_parts)
        self._list_stages = cache(self._list_stages_anew)
        self._update = cache(lambda weights, gpus: self._estimate_all(_list_updates(weights, gpus)))

    def predict(self, step: MeasuredStep, host_s: float | None = None) -> float:
        """Return the seconds of a step; `host_s` is what launching an op takes the framework, None for the model's."""
        if step.mode == "iteration":
            return self._iterate(step, host_s)
        first, layers, last = self._list(step.model, step.batch, step.seq, step.mode, step.dtype, step.tensor)
        if step.mode == "infer":
            calls = [*first.forward, *layers.forward, *last.forward]
            return self.run(_fuse_chain(calls) if step.is_compiled else calls)
        return self._train(step, first, layers, last)

    def run(self, calls: Iterable[Call]) -> float:
        """Return when a GPU has run ops that the host launches one after the other."""
        return self._estimate_all(calls).run(None)

    def _estimate_all(self, calls: Iterable[Call]) -> EstimatedCalls:
        listed = list(calls)
        estimated = np.array([self._estimate(call) for call in listed])
        return EstimatedCalls(estimated[:, 0], estimated[:, 1], np.array([isinstance(call, OpCall) for call in listed]))

    def _estimate(self, call: Call) -> tuple[float, float]:
        """Return the seconds of a call on the host and on the GPU."""
        is_op = isinstance(call, OpCall)
        key = (call.op, call.inputs, call.outputs, tuple(sorted(call.attrs.items()))) if is_op else call
        if key not in self._known:
            cost = self.costs.kernel(call) if isinstance(call, OpCall) else self.costs.collective(call)
            self._known[key] = cost.host_s + self.costs.overheads.op_s, cost.device_s
        return self._known[key]

    def _sum_gradients(self, size: int, ways: int) -> float:
        return self._estimate(CollectiveCall("all_reduce", size, ways, "GPU"))[1] if ways > 1 and size else 0.0

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

    def _iterate(self, step: MeasuredStep, host_s: float | None) -> float:
        """Return the seconds of micro-batches through a pipeline, the sums of gradients and the update."""
        stages = self._list_stages(step.model, step.batch, step.seq, step.dtype, step.tensor, step.pipeline)
        times = [stage.run(host_s) for stage in stages]
        sends = 2 * (self._send(step) if step.pipeline > 1 else 0.0)
        waves = sum(times) + (step.pipeline - 1) * sends + (step.micro_batches - 1) * (max(times) + sends)
        weights = _count_weights(step, step.model.layers // step.pipeline)
        shared = 2 * step.model.vocabulary * step.model.hidden // step.tensor if step.pipeline > 1 else 0
        sums = self._sum_gradients(2 * weights, step.data) + self._sum_gradients(shared, 2)
        return waves + sums + self._update(weights, step.gpus).run(host_s)

    def _list_stages_anew(
        self, model: Transformer, batch: int, seq: int, dtype: str, ways: int, pipeline: int
    ) -> list[EstimatedCalls]:
        """Return the calls of a micro-batch by stage: its layers forward, then each forward again and backward."""
        first, _, last = self._list(model, batch, seq, "iteration", dtype, ways)
        repeated = model.layers // pipeline
        layer = OpList(dtype, True, ways)
        LAYERS[model.kind](layer, model, batch, seq, 0)
        middle = [*layer.forward * repeated, *([*layer.forward, *layer.backward] * repeated)]
        stages: list[list[Call]] = [list(middle) for _ in range(pipeline)]
        stages[0] = [*first.forward, *first.backward, *stages[0]]
        stages[-1] = [*stages[-1], *last.forward, *last.backward]
        return [self._estimate_all(stage) for stage in stages]


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
    ops: list[FusibleOp] = []
    memory: dict[Any, int] = {}
    for call in (one for one in calls if isinstance(one, OpCall)):
        before = ops[-1].call.outputs[0] if ops else None
        producers = [(OUTSIDE, memory.setdefault(tensor, len(memory))) for tensor in call.inputs]
        if producers and call.inputs[0] == before:
            producers[0] = (len(ops) - 1, 0)
        ops.append(FusibleOp(call, tuple(producers)))
    return [kernel.call for kernel in fuse_ops(ClusterOps(tuple(ops), ((len(ops) - 1, 0),))).kernels]


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
