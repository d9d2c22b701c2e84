"""The work of one execution of an op: arithmetic, and bytes moved, from data types and shapes.

Multiplications and additions count one each. Ops without a formula here count bytes alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import NamedTuple

from simplace.costs.cost_model import OpCall, Tensor
from simplace.graph.op_kinds import (
    ARGS,
    CONSTANTS,
    CONTROL_FLOW,
    IDENTITIES,
    LOOP_COND,
    METADATA,
    PLACEHOLDERS,
    RECVS,
    RETVALS,
    SENDS,
    VARIABLE_HANDLE,
    VARIABLES,
)


class Work(NamedTuple):
    """Record of FLOPs and bytes; `is_guess`: no formula exists. `on_matrix_units`: a GPU's tensor cores can do it.

    `is_plain`: each element is read or written once, and that is all: elementwise, a copy, a reduction, an update.
    """

    flops: float
    bytes: int
    on_matrix_units: bool = False
    is_guess: bool = False
    is_plain: bool = False


# Ops that forward a buffer, read a shape or only affect control flow: no arithmetic, no byte of a tensor is touched.
_FREE = frozenset(
    "NoOp PlaceholderWithDefault ReadVariableOp IdentityN StopGradient PreventGradient CheckNumericsV2 Snapshot "
    "Reshape Squeeze ExpandDims ShapeN BroadcastGradientArgs ControlTrigger Assert VarIsInitializedOp VariableShape "
    "EmptyTensorList TensorListReserve TensorListGetItem TensorListSetItem TensorListPushBack TensorListPopBack "
    "TensorListLength TensorListElementShape AnonymousIterator DestroyResourceOp IsVariableInitialized EnsureShape "
    "Empty OptionalFromValue OptionalHasValue OptionalNone".split()
).union(
    CONSTANTS, PLACEHOLDERS, VARIABLES, [VARIABLE_HANDLE], IDENTITIES, METADATA, CONTROL_FLOW, [LOOP_COND], ARGS,
    RETVALS, SENDS, RECVS,
)  # fmt: skip

# FLOPs an element; functions of the exponential kind cost about what Eigen's packet approximations take.
_UNARY: Mapping[str, float] = {
    **dict.fromkeys("Neg Abs Square Relu Relu6 LeakyRelu Sign Floor Ceil Round Inv Reciprocal".split(), 1),
    **dict.fromkeys("LogicalNot IsNan IsFinite IsInf BiasAdd BiasAddV1 ClipByValue CheckNumerics Invert".split(), 1),
    **dict.fromkeys("Conj Real Imag StatelessRandomGetKeyCounter".split(), 1),
    **dict.fromkeys("Sqrt Rsqrt ReluGrad Relu6Grad LeakyReluGrad SqrtGrad RsqrtGrad InvGrad".split(), 4),
    **dict.fromkeys("ReciprocalGrad ComplexAbs".split(), 4),
    **dict.fromkeys("Exp Expm1 Log Log1p Sigmoid Tanh Elu Selu Softplus Softsign Sin Cos Erf Swish".split(), 16),
    **dict.fromkeys("SigmoidGrad TanhGrad EluGrad SeluGrad SoftplusGrad Gelu Lgamma Digamma Erfinv Tan".split(), 6),
    **dict.fromkeys("RandomUniform RandomStandardNormal TruncatedNormal StatelessRandomUniformV2".split(), 30),
    **dict.fromkeys("StatelessRandomNormalV2 StatelessTruncatedNormalV2 RandomUniformInt".split(), 40),
}
_BINARY: Mapping[str, float] = {
    **dict.fromkeys("Add AddV2 Sub Mul Maximum Minimum Equal NotEqual Less LessEqual Greater".split(), 1),
    **dict.fromkeys("GreaterEqual LogicalAnd LogicalOr SquaredDifference Xdivy MulNoNan DivNoNan".split(), 1),
    **dict.fromkeys("BitwiseAnd BitwiseOr BitwiseXor LeftShift RightShift Complex".split(), 1),
    **dict.fromkeys("RealDiv Div TruncateDiv FloorDiv FloorMod Mod".split(), 4),
    **dict.fromkeys("Pow Atan2".split(), 20),
}
_REDUCTIONS = frozenset("Sum Mean Max Min Prod All Any ArgMax ArgMin L2Loss EuclideanNorm Cumsum Bincount".split())
# FLOPs an element of the variable, and how often its bytes are moved: each slot is read and written, the gradient read.
_UPDATES: Mapping[str, tuple[float, int]] = {
    "AssignAddVariableOp": (1, 3), "AssignSubVariableOp": (1, 3), "AssignVariableOp": (0, 2), "Assign": (0, 2),
    "AssignAdd": (1, 3), "AssignSub": (1, 3), "ResourceApplyGradientDescent": (2, 3), "ResourceApplyMomentum": (4, 5),
    "ResourceApplyKerasMomentum": (4, 5), "ResourceApplyAdagrad": (8, 5), "ResourceApplyAdagradV2": (8, 5),
    "ResourceApplyRMSProp": (10, 7), "ResourceApplyAdam": (14, 7), "ApplyGradientDescent": (2, 3),
    "ApplyMomentum": (4, 5), "ApplyAdam": (14, 7),
}  # fmt: skip
_MOVES = frozenset(
    "Concat ConcatV2 Split SplitV Slice StridedSlice Pad PadV2 MirrorPad Transpose Gather GatherV2 ResourceGather "
    "Tile Cast Bitcast Select SelectV2 OneHot Pack Unpack Fill ZerosLike OnesLike Range Reverse ReverseV2 "
    "BroadcastTo Where ScatterNd GatherNd StridedSliceGrad DynamicStitch DynamicPartition ReverseSequence "
    "TensorListStack TensorListFromTensor InvertPermutation SpaceToBatchND BatchToSpaceND LinSpace XlaFusion "
    "Roll MatrixBandPart TensorScatterUpdate TensorScatterAdd TensorScatterSub TensorScatterMax "
    "TensorScatterMin".split()
)

# Of their first input they read what they return, and no more.
_SELECTIVE = frozenset("Slice StridedSlice Gather GatherV2 GatherNd".split())

# Ops whose outputs are tensors that are ready, as they are (kernels/data/iterator_ops.cc, optional_ops.cc): TensorFlow
# 2.21 takes 24 to 65 us for an element of 8 KiB, and for one of 32 MiB. How long they wait for it is not known.
_HANDED = frozenset("IteratorGetNext IteratorGetNextSync IteratorGetNextAsOptional OptionalGetValue".split())


def is_free(op: str) -> bool:
    """Return whether an op touches no element of a tensor.

    >>> is_free("Reshape"), is_free("MatMul")
    (True, False)
    """
    return op in _FREE


def takes_over(op: str) -> bool:
    """Return whether an op makes the buffer that it is given its own (kernels/resource_variable_ops.cc).

    >>> takes_over("AssignVariableOp"), takes_over("AssignAddVariableOp")
    (True, False)
    """
    return op == "AssignVariableOp"


def find_read(call: OpCall, place: int) -> Tensor:
    """Return the input at a place, or of its size what the op reads of it.

    >>> table, ids, rows = (Tensor("float32", s, 4 * s[0]) for s in ((1000,), (2,), (2,)))
    >>> find_read(OpCall("g", "Gather", "GPU", {}, (table, ids), (rows,)), 0)
    Tensor(dtype='float32', shape=(2,), size=8)
    """
    whole = call.inputs[place]
    part = call.outputs[0] if place == 0 and call.op in _SELECTIVE and call.outputs else whole
    return min(whole, part, key=lambda tensor: tensor.size)


SOFTMAX = frozenset(("Softmax", "LogSoftmax"))
# Of the moves, what XLA does by a kernel of its own, or by several.
_SCATTERED = frozenset("ScatterNd Where DynamicStitch DynamicPartition Cumsum Bincount ArgMax ArgMin".split())
_EXPENSIVE = 16  # FLOPs an element, from which on an op is not computed twice to spare memory


def is_fusible(op: str) -> bool:
    """Return whether XLA may compute an op inside the kernel of another.

    >>> is_fusible("AddV2"), is_fusible("Sum"), is_fusible("MatMul")
    (True, True, False)
    """
    is_plain = op in _UNARY or op in _BINARY or op in _MOVES or op in _UPDATES or op in ("AddN", "AccumulateNV2")
    return (is_plain or is_reduction(op)) and op not in _SCATTERED


def is_binary(op: str) -> bool:
    """Return whether an op is elementwise and has two inputs.

    >>> is_binary("Mul"), is_binary("Sqrt")
    (True, False)
    """
    return op in _BINARY


def is_reduction(op: str) -> bool:
    """Return whether an op reduces its input: its result needs all of that."""
    return (op in _REDUCTIONS or op == "BiasAddGrad") and op not in _SCATTERED


def is_expensive(op: str) -> bool:
    """Return whether an elementwise op is better kept in memory than computed twice.

    >>> is_expensive("Exp"), is_expensive("Mul")
    (True, False)
    """
    return (_UNARY.get(op) or _BINARY.get(op) or 0) >= _EXPENSIVE


def count_extra_bytes(call: OpCall) -> int:
    """Return the bytes that an op moves beside its inputs and outputs: an update does so behind a handle."""
    if call.op not in _UPDATES:
        return 0
    moved = sum(tensor.size for tensor in (*call.inputs, *call.outputs))
    return max(_UPDATES[call.op][1] * max((t.size for t in call.inputs), default=0) - moved, 0)


def count_work(call: OpCall) -> Work:
    """Count the FLOPs and bytes of one execution.

    >>> x, w, y = (Tensor("float32", s, 4 * s[0] * s[1]) for s in ((64, 16), (16, 8), (64, 8)))
    >>> count_work(OpCall("m", "MatMul", "CPU", {}, (x, w), (y,)))
    Work(flops=16384, bytes=6656, on_matrix_units=True, is_guess=False, is_plain=False)
    """
    if call.op in _FREE:
        return Work(0, 0)
    moved = 0
    for tensor in (*call.inputs, *call.outputs):
        moved += tensor.size
    if call.op in _SELECTIVE and call.inputs:
        moved += find_read(call, 0).size - call.inputs[0].size
    made = call.outputs[0].elements if call.outputs else 0
    if call.op in _MATRIX:
        return Work(_MATRIX[call.op](call), moved, on_matrix_units=True)
    if call.op in _UNARY or call.op in _BINARY:
        return Work(made * (_UNARY.get(call.op) or _BINARY[call.op]), moved, is_plain=True)
    if call.op in ("AddN", "AccumulateNV2"):
        return Work(made * max(len(call.inputs) - 1, 0), moved, is_plain=True)
    if call.op in _REDUCTIONS:
        return Work(call.inputs[0].elements if call.inputs else made, moved, is_plain=True)
    if call.op in _UPDATES:
        largest = max((t.elements for t in call.inputs), default=0)
        return Work(largest * _UPDATES[call.op][0], moved + count_extra_bytes(call), is_plain=True)
    if call.op in _NETWORK:
        return Work(_NETWORK[call.op](call), moved)
    if call.op in _HANDED:
        return Work(0, 0)
    return Work(0, moved, is_guess=call.op not in _MOVES, is_plain=call.op in _MOVES)


def _count_matmul(call: OpCall) -> int:
    if len(call.inputs) < 2 or not call.outputs or len(call.inputs[0].shape) < 2:
        return 0
    shape = call.inputs[0].shape
    is_turned = bool(call.attrs.get("transpose_a") or call.attrs.get("adj_x"))
    return 2 * call.outputs[0].elements * (shape[-2] if is_turned else shape[-1])


def _count_einsum(call: OpCall) -> int:
    """Return the product of the sizes of all labels of the equation, times two."""
    equation = call.attrs.get("equation", b"")
    left = equation.decode().split("->")[0].split(",") if isinstance(equation, bytes) else []
    sizes: dict[str, int] = {}
    for letters, tensor in zip(left, call.inputs, strict=False):
        plain = letters.replace("...", "")
        sizes.update(zip(reversed(plain), reversed(tensor.shape), strict=False))
    return 2 * prod(sizes.values()) if sizes else 0


def _count_conv(call: OpCall) -> int:
    """Return two FLOPs for each element of the output and each weight of one filter."""
    if len(call.inputs) < 2 or not call.outputs or not call.inputs[1].shape:
        return 0
    filter_shape = call.inputs[1].shape
    return 2 * call.outputs[0].elements * prod(filter_shape[:-1])


def _conv_input_grad(call: OpCall) -> int:
    if len(call.inputs) < 3 or not call.inputs[1].shape:
        return 0
    return 2 * call.inputs[2].elements * prod(call.inputs[1].shape[:-1])


def _conv_filter_grad(call: OpCall) -> int:
    if len(call.inputs) < 3 or not call.outputs or not call.outputs[0].shape:
        return 0
    return 2 * call.inputs[2].elements * prod(call.outputs[0].shape[:-1])


def _count_depthwise(call: OpCall) -> int:
    if len(call.inputs) < 2 or not call.outputs:
        return 0
    return 2 * call.outputs[0].elements * prod(call.inputs[1].shape[:2])


def _each_input(flops: float) -> Callable[[OpCall], float]:
    return lambda call: flops * max((t.elements for t in call.inputs), default=0)


def _count_pool(call: OpCall) -> int:
    window = call.attrs.get("ksize", ())
    taps = prod(window) if isinstance(window, tuple) and all(isinstance(k, int) for k in window) else 1
    return taps * min((t.elements for t in (*call.inputs, *call.outputs) if len(t.shape) == 4), default=0)


def _cudnn_rnn(call: OpCall) -> float:
    """Return two FLOPs per weight, step and sequence; input 3 has the weights, input 0 starts with steps and batch."""
    if len(call.inputs) < 4 or len(call.inputs[0].shape) < 2:
        return 0
    backward = 2 if "Backprop" in call.op else 1
    return 2 * backward * call.inputs[3].elements * prod(call.inputs[0].shape[:2])


_MATRIX: Mapping[str, Callable[[OpCall], float]] = {
    **dict.fromkeys("MatMul BatchMatMul BatchMatMulV2 BatchMatMulV3 _FusedMatMul".split(), _count_matmul),
    "Einsum": _count_einsum,
    **dict.fromkeys("Conv2D Conv3D _FusedConv2D".split(), _count_conv),
    **dict.fromkeys("Conv2DBackpropInput Conv3DBackpropInputV2".split(), _conv_input_grad),
    **dict.fromkeys("Conv2DBackpropFilter Conv3DBackpropFilterV2".split(), _conv_filter_grad),
    **dict.fromkeys("CudnnRNN CudnnRNNV2 CudnnRNNV3 CudnnRNNBackprop CudnnRNNBackpropV3".split(), _cudnn_rnn),
}
_NETWORK: Mapping[str, Callable[[OpCall], float]] = {
    "DepthwiseConv2dNative": _count_depthwise,
    **dict.fromkeys(SOFTMAX, _each_input(20)),
    **dict.fromkeys("SoftmaxCrossEntropyWithLogits SparseSoftmaxCrossEntropyWithLogits".split(), _each_input(22)),
    **dict.fromkeys("FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3 _FusedBatchNormEx".split(), _each_input(8)),
    **dict.fromkeys("FusedBatchNormGrad FusedBatchNormGradV2 FusedBatchNormGradV3".split(), _each_input(12)),
    **dict.fromkeys("MaxPool MaxPoolV2 AvgPool MaxPoolGrad AvgPoolGrad MaxPool3D AvgPool3D".split(), _count_pool),
    "BiasAddGrad": _each_input(1),
    **dict.fromkeys("TopK TopKV2 Unique UniqueV2".split(), _each_input(8)),
    **dict.fromkeys("LRN LRNGrad".split(), _each_input(12)),
    **dict.fromkeys("UnsortedSegmentSum SegmentSum ResourceScatterAdd ScatterAdd".split(), _each_input(1)),
}


_STRING = 24  # bytes of a tstring (tsl/platform/ctstring_internal.h); what is longer is elsewhere


def make_tensor(dtype: str, shape: tuple[int, ...], element_size: int | None) -> Tensor:
    """Make a tensor; types without a fixed element size have no bytes, but strings what each has in the tensor itself.

    >>> make_tensor("float32", (2, 3), 4).size, make_tensor("resource", (), None).size
    (24, 0)
    >>> make_tensor("string", (10,), None).size
    240
    """
    return Tensor(dtype, shape, prod(shape) * (_STRING if dtype == "string" else element_size or 0))
