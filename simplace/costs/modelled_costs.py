"""Estimate GPU kernels by the model that was fitted to measurements; everything else by the roofline."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from simplace.costs.collectives import count_whole_bytes, find_fabric, reach_peer, time_collective
from simplace.costs.cost_model import (
    COMPILED,
    Bound,
    CollectiveCall,
    Fixed,
    KernelCost,
    OpCall,
    Overheads,
    PeerWay,
    Reliability,
)
from simplace.costs.gpu_constants import GpuConstants, read_constants
from simplace.costs.gpu_convolutions import Convolution, Pass, time_convolution
from simplace.costs.gpu_kernels import (
    GpuFigures,
    KernelTime,
    ProductPlan,
    plan_products,
    read_figures,
    time_product,
    time_rows,
    time_traffic,
)
from simplace.costs.gpu_recurrences import RecurrentLayers, count_launches, time_layers
from simplace.costs.gpu_sheet import GpuSheet
from simplace.costs.hardware import CPU_2_CORES, Processor, find_hardware
from simplace.costs.layer_shapes import find_convolution, find_layers_of_call
from simplace.costs.op_work import SOFTMAX, count_work, is_free, takes_over
from simplace.costs.product_shape import Product, find_product
from simplace.costs.roofline import Roofline, count_shards, sum_copies_on_card
from simplace.costs.tensorflow_kernels import OwnKernel, find_own_kernel, find_transposes
from simplace.costs.xla_fusion import FUSED

# Fewer than these are softmax's three kernels: two reductions and what divides (kernels/softmax_op_gpu.cu.cc).
_SOFTMAX_KERNELS = 3
_BATCH_NORM = frozenset("FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3 _FusedBatchNormEx".split())
_BATCH_NORM_GRAD = frozenset("FusedBatchNormGrad FusedBatchNormGradV2 FusedBatchNormGradV3".split())
_LAYOUT_SHARE = 0.7  # of the reached bandwidth that cuDNN's nchwToNhwcKernel comes to, on an H200
_LEAST_SHARE = 0.1  # of a peak; below, a kernel is bound by its start and by too few blocks, not by the peak
_WIDTHS = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2}


@dataclass(frozen=True)
class ModelledCosts:
    """Estimate kernels on a GPU of the library by `gpu_kernels`, all else by a roofline of the same machine.

    `has_own_kernels` says that what no library computes is done by TensorFlow's kernels, as in a graph of its.
    """

    roofline: Roofline
    sheet: GpuSheet
    constants: GpuConstants
    figures: GpuFigures
    allows_tf32: bool = True
    has_own_kernels: bool = True
    _plans: dict[tuple[str, str], ProductPlan] = field(default_factory=dict, compare=False, repr=False)
    _seen: dict[Any, tuple[KernelTime, str]] = field(default_factory=dict, compare=False, repr=False)
    _on_core: dict[str, tuple[float, float]] = field(default_factory=dict, compare=False, repr=False)

    @property
    def name(self) -> str:
        """Name the model."""
        hardware = self.roofline.hardware
        return f"modelled: {', '.join((hardware.cpu.name, hardware.gpu.name, hardware.host_link.name))}"

    @property
    def overheads(self) -> Overheads:
        """Return the executor's fixed times."""
        return self.roofline.overheads

    @property
    def clock(self) -> float:
        """Return the clock of a CPU core."""
        return self.roofline.clock

    def copy(self, size: int, source: str, target: str) -> float:
        """Estimate a copy: between two GPUs at the rate that NCCL's rings reach there, so that both compare.

        Within a card each byte is read and written, as by an elementwise op.
        """
        if target == "same GPU":
            return float(time_traffic(self.figures, self.constants.groups["traffic"], 2.0 * size).seconds)
        if source != "GPU" or target != "GPU":
            return self.roofline.copy(size, source, target)
        rate = reach_peer(find_fabric(self.sheet), self.constants.groups["collectives"])
        return self.roofline.hardware.peer_link.latency_s + size / rate

    @property
    def peer_link(self) -> str:
        """Return the name of the links that join GPUs alone, "" where there are none."""
        return self.roofline.hardware.peer_link.name if self.peer_way == "nvlink" else ""

    @property
    def peer_way(self) -> PeerWay:
        """Return how a copy from a GPU to another goes: over what its rate is that of."""
        kind = find_fabric(self.sheet).kind
        return kind if kind in ("pcie", "host") else "nvlink"

    def assume_reliability(self, what: Fixed) -> Reliability:
        """Return where copies and fixed times come from, and how far off they are taken to be."""
        return self.roofline.assume_reliability(what)

    def collective(self, call: CollectiveCall) -> KernelCost:
        """Estimate a member of a collective: between GPUs as NCCL runs it."""
        cost = self.roofline.collective(call)
        if call.device_type != "GPU" or call.participants < 2:
            return cost
        if call.is_on_card:
            return KernelCost(cost.host_s, sum_copies_on_card(call, self))
        network = self.roofline.hardware.network.bandwidth if call.is_remote else 0.0
        size = count_whole_bytes(call.op, call.size, call.participants)
        seconds = time_collective(
            call.op, size, call.participants, find_fabric(self.sheet, network), self.constants.groups["collectives"],
            self.sheet.bandwidth,
        )  # fmt: skip
        error = self.constants.errors.get("collective_network" if call.is_remote else "collective")
        return KernelCost(cost.host_s, float(seconds), source="modelled", error=error)

    def memory(self, device_type: str) -> int:
        """Return the bytes that a device has."""
        return self.roofline.memory(device_type)

    def kernel(self, call: OpCall) -> KernelCost:
        """Estimate one execution."""
        if call.device_type != "GPU" or is_free(call.op) or takes_over(call.op):
            return self.roofline.kernel(call)
        found = self._model_kernel(call)
        if found is None:
            return self.roofline.kernel(call)
        time, operator = found
        bound: Bound = "memory" if time.memory >= time.arithmetic else "arithmetic"
        share = max(time.memory, time.arithmetic) / time.seconds
        error = self.constants.errors.get(operator)
        if share < _LEAST_SHARE or time.floor > time.seconds / 2:
            bound = "latency"
            error = max(error or 0.0, self.constants.errors.get(bound, 0.0)) or None
        cost = KernelCost(
            self.roofline.launch_seconds(call), time.seconds, self._count_shards(time, call), source="modelled",
            error=error, bound=bound, share=share,
        )  # fmt: skip
        layers = find_layers_of_call(call)
        return cost if layers is None else self._launch_each(cost, count_launches(layers))

    def _launch_each(self, cost: KernelCost, launches: int) -> KernelCost:
        """Return the cost of kernels that a library launches one by one, each of which takes the host as long as an op.

        Two LSTM layers on an H200 took as long in float16 as in float32, 8 us for each of their 852 kernels.
        """
        later = (launches - 1) * cost.host_s
        whole = max(cost.device_s, later + cost.device_s / launches)
        waits = whole - cost.device_s
        error = (waits * self.assume_reliability("launch").error + cost.device_s * cost.off) / whole
        bound: Bound | None = "latency" if waits > cost.device_s else cost.bound
        return cost._replace(
            device_s=whole, shards=1 if waits else cost.shards, launches=launches, later_s=later, waits_s=waits,
            error=error, bound=bound, share=cost.share * cost.device_s / whole,
        )  # fmt: skip

    def _count_shards(self, time: KernelTime, call: OpCall) -> int:
        """Return how many threads would share the same work on the host, as in the textbook's pool of each device."""
        dtype = call.outputs[0].dtype if call.outputs else "float32"
        rates = self._on_core.get(dtype)
        if rates is None:
            rates = self._on_core[dtype] = self._compare_with_core(dtype.removesuffix("_ref"))
        return count_shards(max(time.arithmetic * rates[0], time.memory * rates[1]))

    def _compare_with_core(self, dtype: str) -> tuple[float, float]:
        """Return the cycles that a core takes for what the GPU's peaks, of arithmetic and of memory, do in a second."""
        core, peak = self.roofline.hardware.cpu, self.sheet.flops(dtype, self._is_on_tensor_cores(dtype))
        return core.clock * peak / core.flops("float32", False), core.clock * self.sheet.bandwidth / core.bandwidth

    def _model_kernel(self, call: OpCall) -> tuple[KernelTime, str] | None:
        """Return the time of an op whose family is known, and the class of operators that its error is that of."""
        dtype = call.outputs[0].dtype.removesuffix("_ref") if call.outputs else ""
        if dtype in _WIDTHS and (layer := find_convolution(call) or find_layers_of_call(call)) is not None:
            is_own = self._is_run_by_tensorflow(call)
            if (known := self._seen.get(key := (layer, dtype, is_own))) is None:
                known = self._seen[key] = self._estimate_layer(layer, dtype, call)
            return known
        product = find_product(call)
        moved = sum(t.size for t in (*call.inputs, *call.outputs))
        if product is not None and dtype in _WIDTHS:
            turned = find_transposes(call) if self._is_run_by_tensorflow(call) else None
            shape = (product, dtype, moved if product.is_image else 0, turned)
            if (known := self._seen.get(shape)) is None:
                time, operator = self._estimate_product(product, dtype, moved)
                known = self._seen[shape] = time if turned is None else self._add_kernels(time, turned), operator
            return known
        own = find_own_kernel(call) if self._is_run_by_tensorflow(call) else None
        if own is not None:
            return self._estimate_own_kernel(call, own), "tensorflow"
        if call.op in SOFTMAX and dtype in _WIDTHS and call.outputs[0].shape:
            return self._estimate_softmax(call, _WIDTHS[dtype])
        work = count_work(call)
        is_norm = call.op in _BATCH_NORM or call.op in _BATCH_NORM_GRAD
        if is_norm and call.attrs.get("is_training", True):
            read = sum(tensor.size for tensor in call.inputs[: 2 if call.op in _BATCH_NORM_GRAD else 1])
            work = work._replace(bytes=work.bytes + read)  # for the sums over the batch, then all once more
        elif not (work.is_plain or is_norm):
            return None
        time = time_traffic(self.figures, self.constants.groups["traffic"], float(work.bytes))
        return time, "layer_norm" if is_norm else "elementwise"

    def _is_run_by_tensorflow(self, call: OpCall) -> bool:
        """Return whether TensorFlow's kernels compute an op, not those of XLA or of another framework."""
        return self.has_own_kernels and not (call.attrs.get(COMPILED) or call.attrs.get(FUSED))

    def _estimate_own_kernel(self, call: OpCall, own: OwnKernel) -> KernelTime:
        """Return the time of what TensorFlow's own kernels compute: as memory, or as its threads are able to."""
        time = time_traffic(self.figures, self.constants.groups["traffic"], float(count_work(call).bytes))
        alone = self._add_kernels(KernelTime(0.0, 0.0, 0.0, 0.0), own)
        return KernelTime(max(alone.seconds, alone.floor + time.seconds - time.floor), 0.0, time.memory, alone.floor)

    def _add_kernels(self, time: KernelTime, own: OwnKernel) -> KernelTime:
        """Return a time with that of some of TensorFlow's own kernels after it."""
        start = own.kernels * self.constants.groups["traffic"]["floor_s"]
        rate = self.figures.clock * min(own.rate * self.figures.sms, own.most or float("inf"))
        return time._replace(seconds=time.seconds + start + own.elements / rate, floor=time.floor + start)

    def _estimate_layer(
        self, layer: tuple[Convolution, Pass] | RecurrentLayers, dtype: str, call: OpCall
    ) -> tuple[KernelTime, str]:
        """Return the time of what cuDNN computes, and its class of operators."""
        on_tensor_cores = self._is_on_tensor_cores(dtype)
        half = "_fp16" if on_tensor_cores else ""
        if isinstance(layer, RecurrentLayers):
            time = time_layers(self._plan(dtype, ""), self._plan(dtype, "rnn"), layer)
            return time, f"rnn{half}_{'input' if layer.is_gradient else 'forward'}"
        time = time_convolution(self._plan(dtype, "conv"), layer[0], layer[1], on_tensor_cores)
        if self._is_run_by_tensorflow(call) and on_tensor_cores and dtype == "float32" and layer[1] != "forward":
            time = self._add_layout_changes(time, layer[0])
        return time, f"conv{half}_{layer[1]}"

    def _add_layout_changes(self, time: KernelTime, conv: Convolution) -> KernelTime:
        """Return a time with that of bringing float32 images into the layout that tensor cores need.

        Grappler's layout optimizer makes it NCHW (grappler/optimizers/generic_layout_optimizer.cc), and for gradients
        cuDNN has only kernels for NHWC there.
        """
        sizes = (conv.image, conv.weights, conv.made)
        images = sum(sizes) - min(sizes)  # all but the smallest, as a rule the filter
        moved = 2 * _WIDTHS["float32"] * images / _LAYOUT_SHARE
        turned = time_traffic(self.figures, self.constants.groups["traffic"], moved)
        seconds = time.seconds + turned.seconds + turned.floor
        return KernelTime(seconds, time.arithmetic, time.memory, time.floor + 2 * turned.floor)

    def _estimate_product(self, product: Product, dtype: str, moved: int) -> tuple[KernelTime, str]:
        time = time_product(
            self._plan(dtype, ""), float(product.b), float(product.m), float(product.n), float(product.k),
            float(product.along_k), float(moved) if product.is_image else None,
        )  # fmt: skip
        plain = "bmm" if product.b > 1 else "linear"
        return time, "gemm_bf16" if self._is_on_tensor_cores(dtype) else plain

    def _is_on_tensor_cores(self, dtype: str) -> bool:
        return self.sheet.has_matrix_units(dtype) and (dtype != "float32" or self.allows_tf32)

    def _plan(self, dtype: str, group: str) -> ProductPlan:
        """Return a plan for products; a group's constants go before those of products."""
        plan = self._plans.get((dtype, group))
        if plan is None:
            groups, on_tensor_cores = self.constants.groups, self._is_on_tensor_cores(dtype)
            products = groups["tensor" if on_tensor_cores else "simt"]
            constants = {**groups["traffic"], **products, **(groups[group] if group else {})}
            if group == "rnn" and self.has_own_kernels:  # TensorFlow's cuDNN, whatever the GPU
                constants["step_s"] = constants["step_s_cudnn9"]
            peak = self.sheet.flops(dtype, on_tensor_cores)
            plan = plan_products(self.figures, constants, peak, _WIDTHS[dtype], on_tensor_cores)
            self._plans[dtype, group] = plan
        return plan

    def _estimate_softmax(self, call: OpCall, width: int) -> tuple[KernelTime, str] | None:
        cols = float(call.outputs[0].shape[-1])
        rows = call.outputs[0].elements / max(cols, 1.0)
        if not rows:
            return None
        groups = self.constants.groups
        constants = {**groups["traffic"], **groups["rows"]}
        time = time_rows(self.figures, constants, rows, cols, width, "softmax")
        more = (_SOFTMAX_KERNELS - 1) * time.floor
        if call.attrs.get(FUSED):  # XLA's single kernel, which may read more than its own matrix
            moved = sum(tensor.size for tensor in (*call.inputs, *call.outputs)) - 2 * call.outputs[0].size
            beside = time_traffic(self.figures, constants, max(0.0, float(moved)))
            return time._replace(seconds=time.seconds + beside.seconds - beside.floor), "softmax"
        return time._replace(seconds=time.seconds + more, floor=time.floor + more), "softmax"


def make_modelled_costs(
    machine: str = "a100",
    memory_fraction: float = 0.0,
    constants: GpuConstants | None = None,
    allows_tf32: bool = True,
    has_own_kernels: bool = True,
    cpu: Processor = CPU_2_CORES,
) -> ModelledCosts | Roofline:
    """Return the model for a machine of the library, by the name of its GPUs; `cpu` is a core of its CPU."""
    hardware = replace(find_hardware(machine), cpu=cpu)
    roofline = Roofline(hardware, memory_fraction=memory_fraction, allows_tf32=allows_tf32)
    sheet = hardware.gpu.sheet
    if sheet is None:
        return roofline
    figures = read_figures(sheet)
    return ModelledCosts(roofline, sheet, constants or read_constants(), figures, allows_tf32, has_own_kernels)
