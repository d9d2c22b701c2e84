"""What kernels allocate besides their outputs, and free when they end.

On any device that is what Eigen puts in another order first: operands of an Einsum, what a reduction sums over. On a
CPU, as without oneDNN, it is also what tensorflow/core/kernels/conv_grad_filter_ops.cc, conv_grad_input_ops.h, their
like for three dimensions, depthwise_conv_grad_op.cc, maxpooling_op.cc and matmul_op_impl.h take. What cuDNN takes on a
GPU depends on the algorithm that it chooses there, and is not known here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from simplace.costs.cost_model import Tensor
from simplace.costs.estimate import EstimatedGraph
from simplace.executor import cpu_scratch
from simplace.executor.cpu_scratch import HALVES
from simplace.executor.einsum_memory import list_einsum_scratch
from simplace.executor.reduction_memory import REDUCTIONS, find_shuffled
from simplace.graph.constant_numbers import read_numbers
from simplace.graph.node_def import TensorInfo
from simplace.partition.graph_partition import PartitionedGraph

_WORKING_SET = 30 << 20  # bytes of the images that one product takes together (target_working_set_size)
_LEAST_WORK = 256 << 10  # bytes of one image for each thread, from which images are taken one by one (l2_cache_size)
_MOST_OVERHEAD = 25  # kMaxTempAllocationOverhead
_ASSUMED_CACHE = 2 << 20  # bytes of an L3 cache of which nothing is known
_INDEX = 8  # bytes of the position of a maximum, an int64
_FLOAT = 4  # bytes
_PACKET = 32  # bytes of a vector register, with AVX
FILTER, INPUT = "Conv2DBackpropFilter", "Conv2DBackpropInput"
_FILTER_3D = frozenset({"Conv3DBackpropFilter", "Conv3DBackpropFilterV2"})
_INPUT_3D = frozenset({"Conv3DBackpropInput", "Conv3DBackpropInputV2"})
_DEPTHWISE = "DepthwiseConv2dNativeBackpropFilter"
_EINSUM, _MIRRORED = "Einsum", "MirrorPadGrad"
_PRODUCTS = frozenset({"MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"})
POOLINGS = frozenset({"MaxPoolGrad", "MaxPoolGradV2"})
BEFORE_OUTPUTS = POOLINGS.union({_EINSUM}, cpu_scratch.EARLY_RULES)  # what allocates it before its outputs
TAKING = BEFORE_OUTPUTS.union(
    REDUCTIONS, _PRODUCTS, _FILTER_3D, _INPUT_3D, {FILTER, INPUT, _DEPTHWISE, _MIRRORED}, cpu_scratch.LATE_RULES
)
_LARGEST = 1  # the number of the input that the gradient of a pooling computes again


class KernelCall(NamedTuple):
    """Record of what a kernel is given and makes, and of its attributes.

    Also of the equation of an Einsum, and of the axes of a reduction, if they are known.
    """

    op: str
    inputs: Sequence[Tensor]
    outputs: Sequence[Tensor]
    is_on_cpu: bool = True
    equation: str = ""
    axes: tuple[int, ...] | None = None
    attrs: Mapping[str, Any] = MappingProxyType({})


def make_call(estimated: EstimatedGraph, node: int) -> KernelCall:
    """Return the call of a node's kernel."""
    graph, part = estimated.graph, estimated.graph.nodes[node]
    is_on_cpu = graph.placed.devices.by_name[part.device].type == "CPU"
    equation = graph.attrs_of(node).get("equation", b"") if part.op == _EINSUM else b""
    axes = read_constant(graph, node, 1) if part.op in REDUCTIONS else None
    text = equation.decode() if isinstance(equation, bytes) else ""
    return KernelCall(
        part.op, estimated.list_inputs(node), estimated.outputs[node], is_on_cpu, text, axes, graph.attrs_of(node)
    )


def read_constant(graph: PartitionedGraph, node: int, place: int) -> tuple[int, ...] | None:
    """Return the whole numbers of an input that is a constant, None for others."""
    sources = [edge.src for edge in graph.ins[node] if edge.dst_slot == place]
    value = graph.attrs_of(sources[0]).get("value") if sources else None
    numbers = read_numbers(value) if isinstance(value, TensorInfo) else None
    return (numbers,) if isinstance(numbers, int) else numbers


def list_scratch(call: KernelCall, threads: int) -> list[int]:
    """List the bytes of what a kernel allocates, in order, with so many intra-op threads.

    >>> image, window = Tensor("float32", (64, 15, 15, 16), 921_600), Tensor("float32", (3, 3, 16, 32), 18_432)
    >>> sizes, gradient = Tensor("int32", (4,), 16), Tensor("float32", (64, 13, 13, 32), 1_384_448)
    >>> list_scratch(KernelCall("Conv2DBackpropFilter", [image, sizes, gradient], [window]), threads=1)
    [22291776]
    >>> list_scratch(KernelCall("Conv2DBackpropInput", [sizes, window, gradient], [image]), threads=1)
    [22291776]
    >>> half = Tensor("float16", (2, 3), 12)
    >>> list_scratch(KernelCall("MatMul", [half, half], [half]), threads=1)
    [24, 24, 24]
    """
    if call.op == _EINSUM and call.outputs:
        found = list_einsum_scratch(call.equation, call.inputs, call.outputs[0])
    elif call.op == _MIRRORED:
        found = [tensor.size for tensor in call.inputs[:1]]
    elif call.op in REDUCTIONS:
        found = find_shuffled(call.inputs, call.outputs, call.axes)
    else:
        found = _list_on_cpu(call, threads) if call.is_on_cpu else []
    return [size for size in found if size]


def _list_on_cpu(call: KernelCall, threads: int) -> list[int]:
    op, inputs, outputs = call.op, call.inputs, call.outputs
    if op in cpu_scratch.RULES and inputs and outputs:
        return cpu_scratch.RULES[op](inputs, outputs, call.attrs, threads)
    if op in POOLINGS and len(inputs) > _LARGEST:
        return [_INDEX * prod(inputs[_LARGEST].shape)]
    if op in (FILTER, INPUT):
        return [_measure_columns(call, threads)]
    if op in _FILTER_3D or op in _INPUT_3D:
        return [measure_columns_3d(call, _find_last_cache())]
    if op == _DEPTHWISE:
        return [_measure_padded(call)]
    if op in _PRODUCTS and inputs and all(one.dtype in HALVES for one in inputs):
        return [_FLOAT * prod(one.shape) for one in (*inputs, *outputs)]  # each is converted
    return []


def _measure_columns(call: KernelCall, threads: int) -> int:
    """Return the bytes of the images whose patches a convolution's gradient puts in columns at once."""
    if len(call.inputs) < 3 or not call.outputs:
        return 0
    window, gradient = (call.outputs[0] if call.op == FILTER else call.inputs[1]), call.inputs[2]
    if len(window.shape) != 4 or len(gradient.shape) != 4 or not window.size or not gradient.size:
        return 0
    places, columns, element = prod(gradient.shape[1:3]), prod(window.shape[:3]), window.size // prod(window.shape)
    work = _count_elements(places, columns, window.shape[3])
    is_one_by_one = call.op == INPUT and (gradient.shape[0] == 1 or work // threads >= _LEAST_WORK // element)
    images = 1 if is_one_by_one else -(-(_WORKING_SET // element) // work)
    return images * places * columns * element


def measure_columns_3d(call: KernelCall, cache_bytes: int) -> int:
    """Return the bytes of the columns that the gradient of a 3-D convolution takes with so large an L3 cache.

    Where that is much more than all tensors take, another kernel runs, which takes none.

    >>> image, gradient = Tensor("float32", (1000, 10, 10, 10, 2), 8_000_000), Tensor("", (1000, 8, 8, 8, 8), 16384000)
    >>> window, sizes = Tensor("float32", (3, 3, 3, 2, 8), 1_728), Tensor("int32", (5,), 20)
    >>> measure_columns_3d(KernelCall("Conv3DBackpropFilterV2", [image, sizes, gradient], [window]), 480 << 20)
    432525312
    """
    if len(call.inputs) < 3 or not call.outputs:
        return 0
    is_filter, gradient = call.op in _FILTER_3D, call.inputs[2]
    window, image = (call.outputs[0], call.inputs[0]) if is_filter else (call.inputs[1], call.outputs[0])
    if any(len(one.shape) != 5 for one in (window, image, gradient)) or not window.size or not gradient.size:
        return 0
    places, columns, element = prod(gradient.shape[1:4]), prod(window.shape[:4]), window.size // prod(window.shape)
    work = _count_elements(places, columns, window.shape[4])
    images = -(-(cache_bytes // element) // work) if is_filter or gradient.shape[0] > 1 else 1
    made, others = images * places * columns, sum(prod(one.shape) for one in (window, image, gradient))
    return made * element if made // others <= _MOST_OVERHEAD else 0


def _count_elements(places: int, columns: int, depth: int) -> int:
    """Count the elements of an image's product: both operands, and the result."""
    return places * columns + places * depth + columns * depth


def _measure_padded(call: KernelCall) -> int:
    """Return the bytes of the filters of a whole batch, each channel padded to vector registers."""
    if not call.inputs or not call.outputs or len(call.inputs[0].shape) != 4 or len(call.outputs[0].shape) != 4:
        return 0
    window = call.outputs[0]
    height, width, channels, multiplier = window.shape
    element = window.size // max(1, prod(window.shape))
    lanes = max(1, _PACKET // max(1, element))
    depth = -(-channels * multiplier // lanes) * lanes
    return call.inputs[0].shape[0] * height * width * depth * element


@cache
def _find_last_cache() -> int:
    """Return the bytes of this computer's L3 cache, as Eigen takes it for an unknown one where nothing tells."""
    try:
        text = Path("/sys/devices/system/cpu/cpu0/cache/index3/size").read_text(encoding="ascii").strip()
        return int(text.removesuffix("K")) << 10
    except (OSError, ValueError):
        return _ASSUMED_CACHE


def find_overwritten(op: str) -> int:
    """Return the number of the input that a kernel writes into, and copies if others need it; -1 for none."""
    return _LARGEST if op in POOLINGS else -1
