"""How fast TensorFlow's own GPU kernels are that do not keep up with memory: elements that an SM does in a clock.

Its vectorized elementwise kernels run at the speed of memory. Others compute the place of each element by divisions
(broadcasts, slices, transposes), add into few places under a lock (gradients of biases, reductions to few outputs) or
run as several kernels in a row. The rates are those of TensorFlow 2.21 on an H200, in the medians of the steps of
`benchmarks/gpu_models.py`; an SM of another GPU is taken to do as many in a clock.
"""

from __future__ import annotations

from typing import NamedTuple

from simplace.costs.cost_model import OpCall, Tensor
from simplace.costs.op_work import is_binary, is_reduction

_HALVES = frozenset(("float16", "bfloat16"))
_FEW_COLUMNS = 4096  # up to which columns are reduced by kernels of their own (kernels/reduction_gpu_kernels.cu.h)
_COLUMN_RATE = 0.27
_IMAGE_RATE = 0.8  # of what is repeated in four dimensions
_TRANSPOSE_RATE = 0.6  # of an Einsum's operands, in four dimensions
_SEGMENT_RATE, _BLOCK_RATE = 1.8, 0.86  # of cub::DeviceSegmentedReduce, and of a block, one for each channel of images


class OwnKernel(NamedTuple):
    """Record of how an op runs: elements that an SM does in a clock, all kernels together, and how many there are.

    `most` is the rate of the whole GPU where so few blocks share the work that some SMs have none; 0 without a limit.
    """

    rate: float
    elements: int
    kernels: int = 1
    most: float = 0.0


_RATES = {
    "Cast": 1.4, "Select": 1.0, "SelectV2": 1.0, "Erf": 0.8, "Erfc": 0.8, "BiasAdd": 1.9, "Pad": 1.2, "PadV2": 1.2,
    "ConcatV2": 1.4, "Slice": 2.4, "StridedSliceGrad": 2.4, "MaxPoolGrad": 0.8, "MaxPool": 2.2,
    "UnsortedSegmentSum": 1.1, "Tile": 2.5,
}  # fmt: skip
_KERNELS = {"SparseSoftmaxCrossEntropyWithLogits": (0.3, 8), "SoftmaxCrossEntropyWithLogits": (0.3, 8),
            "Softmax": (0.6, 3), "LogSoftmax": (0.6, 3)}  # fmt: skip


def find_own_kernel(call: OpCall) -> OwnKernel | None:
    """Return how an op runs by kernels of TensorFlow that are slower than memory; None where they are not known to be.

    >>> image, scale = Tensor("float32", (64, 56, 56, 64), 51380224), Tensor("float32", (64,), 256)
    >>> find_own_kernel(OpCall("m", "Mul", "GPU", {}, (image, scale), (image,))).rate
    0.8
    >>> find_own_kernel(OpCall("m", "Mul", "GPU", {}, (image, image), (image,)))
    """
    tensors = call.outputs if call.op == "Slice" else (*call.inputs, *call.outputs)
    elements = max((tensor.elements for tensor in tensors), default=0)
    if call.op in _KERNELS:
        rate, kernels = _KERNELS[call.op]
        return OwnKernel(rate, elements, kernels)
    if call.op in _RATES:
        is_image = call.op == "Tile" and len(call.outputs[0].shape) > 3
        return OwnKernel(_IMAGE_RATE if is_image else _RATES[call.op], elements)
    if call.op == "BiasAddGrad":
        return OwnKernel(_rate_bias_gradient(call), elements)
    if is_binary(call.op) and _broadcasts(call):
        return OwnKernel(_IMAGE_RATE if len(call.outputs[0].shape) > 3 else 1.1, elements)
    if is_reduction(call.op) and call.inputs and call.outputs:
        return _find_reduction(call.inputs[0], call.outputs[0])
    return None


def find_transposes(call: OpCall) -> OwnKernel | None:
    """Return how an Einsum's operands and result are brought into the order of a batched product, None where they are.

    The batch's labels come first, in the order of the result (kernels/linalg/einsum_op_impl.h).
    """
    equation = call.attrs.get("equation", b"")
    terms, arrow, made = (equation.decode() if isinstance(equation, bytes) else "").partition("->")
    parts = terms.split(",")
    if call.op != "Einsum" or not arrow or len(parts) != 2 or "." in equation.decode():
        return None
    batch = [label for label in made if label in parts[0] and label in parts[1]]
    both = zip((*parts, made), (*call.inputs, *call.outputs), strict=False)
    moved = [tensor.elements for labels, tensor in both if batch and list(labels[: len(batch)]) != batch]
    return OwnKernel(_TRANSPOSE_RATE, sum(moved), len(moved)) if moved else None


def _rate_bias_gradient(call: OpCall) -> float:
    """Return the rate of adding into biases in shared memory (kernels/bias_op_gpu.cu.cc).

    Halves are added by trying again until nobody else has: measured were 0.02 to 1.2, by the values, too.
    """
    return 0.1 if call.outputs[0].dtype in _HALVES else 1.2


def _broadcasts(call: OpCall) -> bool:
    """Return whether an elementwise op repeats an input that is no scalar."""
    shapes = {tensor.shape for tensor in call.inputs if tensor.elements > 1}
    return len(shapes) > 1


def _find_reduction(given: Tensor, result: Tensor) -> OwnKernel | None:
    """Return how a reduction to few outputs runs along all but the last dimension, or all but the channels of images.

    Of images the channels come second where a GPU trains with them, whether Grappler has moved them or will.
    """
    if _keeps_channels(given, result):
        return OwnKernel(_SEGMENT_RATE, given.elements, most=_BLOCK_RATE * result.elements)
    is_of_columns = bool(given.shape) and result.elements == given.shape[-1] < given.elements
    outputs = result.elements
    if len(given.shape) > 3 and not is_of_columns and result.shape:
        kept = [one for one in result.shape if one > 1]
        is_of_columns = bool(kept) and tuple(kept) == given.shape[-len(kept) :] and outputs < given.elements
    if not is_of_columns or outputs > _FEW_COLUMNS:
        return None
    return OwnKernel(_COLUMN_RATE, given.elements)


def _keeps_channels(given: Tensor, result: Tensor) -> bool:
    """Return whether one number is left for each channel of float32 images, whatever their layout."""
    kept = [one for one in result.shape if one > 1]
    is_image = len(given.shape) == 4 and given.dtype not in _HALVES and result.elements < given.elements
    return is_image and result.elements <= _FEW_COLUMNS and kept in ([given.shape[1]], [given.shape[-1]])
