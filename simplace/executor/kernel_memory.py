"""Where kernels put their outputs: into memory of their own, into an input's, or they forward an input.

Facts of TensorFlow's kernels: who calls forward_input, who sets an input as the output (tensorflow/core/kernels).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from simplace.costs.cost_model import Tensor
from simplace.executor.slice_memory import is_rows_of
from simplace.graph.op_kinds import (
    ARGS,
    CONSTANTS,
    CONTROL_FLOW,
    IDENTITIES,
    LOOP_COND,
    RETVALS,
    VARIABLE_HANDLE,
    VARIABLES,
)

# Ops that hand out what lives longer than the step.
RESIDENT = CONSTANTS | ARGS | VARIABLES | {VARIABLE_HANDLE}
READ = "ReadVariableOp"
ASSIGN = "AssignVariableOp"
# What reads or writes rows of a variable, which makes every later read of it a copy (EnsureSparseVariableAccess of
# kernels/training_op_helpers.h).
ROW_ACCESS = ("ResourceGather", "ResourceScatter", "ResourceSparseApply")
# What updates variables in place, or in a copy while somebody holds what was read (PrepareToUpdateVariable there).
UPDATES = ("AssignAddVariableOp", "AssignSubVariableOp", "ResourceApply", "ResourceStridedSliceAssign")

# Ops whose outputs are their inputs, first to first; what follows is one buffer under another shape.
_HANDED_ON = frozenset({"IdentityN", LOOP_COND}).union(IDENTITIES, RETVALS)
_FIRST_HANDED_ON = frozenset(
    "StopGradient PreventGradient Snapshot CheckNumerics Reshape Squeeze ExpandDims EnsureShape Bitcast".split()
).union(CONTROL_FLOW)
# Ops that do so where nothing changes: the output has the shape of the input (tile_ops.cc, broadcast_to_op.cc), or as
# many elements (reduction_ops_common.h: nothing is reduced).
_FIRST_IF_SAME_SHAPE = frozenset("Tile BroadcastTo Pad PadV2 MirrorPad Concat ConcatV2".split())
_FIRST_IF_SAME_SIZE = frozenset("Sum Mean Max Min Prod All Any Pack".split())
# Ops whose outputs are rows of an input, which stays in memory for them, where rows are a multiple of what Eigen
# aligns to (split_op.cc, split_v_op.cc; ops_util.h): its number. See `slice_memory` for slices.
_ROWS_OF = {"Split": 1, "SplitV": 0}
# Ops that write an output into an input which nobody else needs, of the same type and size: any of their inputs ...
_INTO_ANY = frozenset(
    "Abs Acos Acosh Add AddV2 Asin Asinh Atan Atan2 Atanh BitwiseAnd BitwiseOr BitwiseXor Ceil Conj Cos Cosh "
    "Digamma Div DivNoNan Erf Erfc Exp Expm1 Floor FloorDiv FloorMod Inv InvGrad Invert Lgamma Log Log1p LogicalAnd "
    "LogicalNot LogicalOr Maximum Minimum Mod Mul MulNoNan Neg Pow RealDiv Reciprocal ReciprocalGrad Rint Round "
    "Rsqrt RsqrtGrad Sigmoid SigmoidGrad Sign Sin Sinh Sqrt SqrtGrad Square SquaredDifference Sub Tan Tanh TanhGrad "
    "TruncateDiv TruncateMod Xdivy Xlogy Relu Relu6 ReluGrad Relu6Grad Elu EluGrad Selu SeluGrad LeakyRelu "
    "LeakyReluGrad Softplus SoftplusGrad Softsign SoftsignGrad BiasAdd BiasAddV1 Softmax LogSoftmax AddN "
    "ClipByValue ZerosLike OnesLike Cholesky CholeskyGrad MatrixInverse MatrixExponential MatrixLogarithm "
    "MatrixSquareRoot MatrixDeterminant BesselI0 BesselI0e BesselI1 BesselI1e BesselJ0 BesselJ1 BesselK0 BesselK0e "
    "BesselK1 BesselK1e BesselY0 BesselY1 Dawsn Erfinv Expint FresnelCos FresnelSin Igamma IgammaGradA Igammac "
    "LeftShift Ndtri NextAfter Polygamma RandomGammaGrad RightShift Spence Zeta".split()
)
# ... or, by output, one of these (xent_op.cc, sparse_xent_op.cc, cwise_op_select.cc, fused_batch_norm_op.cc,
# maxpooling_op.cc; linalg/linalg_ops_common.cc and the ops made of it, matrix_band_part_op.cc, matrix_set_diag_op.cc,
# lu_op.cc; image/adjust_hue_op.cc, regex_replace_op.cc, strided_slice_op.cc).
_INTO_SOME: Mapping[str, Mapping[int, tuple[int, ...]]] = {
    "SoftmaxCrossEntropyWithLogits": {1: (0,)},
    "SparseSoftmaxCrossEntropyWithLogits": {1: (0,)},
    "SelectV2": {0: (1, 2)},
    "Select": {0: (1, 2)},
    "FusedBatchNorm": {0: (0,)},
    "FusedBatchNormV2": {0: (0,)},
    "FusedBatchNormV3": {0: (0,)},
    "MatrixBandPart": {0: (0,)},
    "MatrixSetDiag": {0: (0,)},
    "MatrixSetDiagV2": {0: (0,)},
    "MatrixSetDiagV3": {0: (0,)},
    "SelfAdjointEigV2": {0: (0,), 1: (0,)},
    "Svd": {0: (0,), 1: (0,), 2: (0,)},
    "Qr": {0: (0,), 1: (0,)},
    "LogMatrixDeterminant": {0: (0,), 1: (0,)},
    "MaxPoolGrad": {0: (0,)},
    "MaxPoolGradV2": {0: (0,)},
    "AdjustHue": {0: (0,)},
    "Lu": {0: (0,)},
    "RegexReplace": {0: (0,)},
    "StaticRegexReplace": {0: (0,)},
    "TensorStridedSliceUpdate": {0: (0,)},
}


def find_input_handed_on(op: str, slot: int, inputs: Sequence[Tensor], output: Tensor) -> int:
    """Return the number of the input that is an output, -1 where the output has memory of its own.

    >>> a, b = Tensor("float32", (2, 3), 24), Tensor("float32", (4, 3), 48)
    >>> find_input_handed_on("IdentityN", 1, [a, a], a), find_input_handed_on("Relu", 0, [a], a)
    (1, -1)
    >>> find_input_handed_on("Tile", 0, [a, a], a), find_input_handed_on("Tile", 0, [a, a], b)
    (0, -1)
    >>> rows, part, axis = Tensor("float32", (9, 32), 1152), Tensor("float32", (3, 32), 384), Tensor("int32", (), 4)
    >>> find_input_handed_on("Split", 2, [axis, rows], part), find_input_handed_on("SplitV", 0, [b, axis, axis], a)
    (1, -1)
    """
    if op in _ROWS_OF and len(inputs) > _ROWS_OF[op] and is_rows_of(inputs[_ROWS_OF[op]], output):
        return _ROWS_OF[op]
    if op == "Transpose" and inputs and _keeps_order(inputs[0], output):
        return 0
    if op in _HANDED_ON:
        return slot if slot < len(inputs) else -1
    if op in _FIRST_HANDED_ON:
        return 0 if inputs else -1
    if not inputs or slot:
        return -1
    is_first = (op in _FIRST_IF_SAME_SHAPE and inputs[0].shape == output.shape) or (
        op in _FIRST_IF_SAME_SIZE and inputs[0].size == output.size and inputs[0].dtype == output.dtype
    )
    return 0 if is_first else -1


def list_forwardable(op: str, slot: int, inputs: Sequence[Tensor], output: Tensor) -> list[int]:
    """List the numbers of the inputs that an output may be written into, the one to try first first.

    >>> a, b = Tensor("float32", (2, 3), 24), Tensor("float32", (3,), 12)
    >>> list_forwardable("AddV2", 0, [b, a], a), list_forwardable("MatMul", 0, [a, a], a)
    ([1], [])
    """
    among: Sequence[int] = ()
    if op in _INTO_ANY and slot == 0:
        among = range(len(inputs))
    elif op in _INTO_SOME:
        among = _INTO_SOME[op].get(slot, ())
    return [i for i in among if i < len(inputs) and _fits(inputs[i], output)]


def _keeps_order(given: Tensor, output: Tensor) -> bool:
    """Return whether a transposed tensor has only moved dimensions of one element (NonSingletonDimensionsAlign)."""
    before, after = ([dim for dim in tensor.shape if dim != 1] for tensor in (given, output))
    return before == after and (len(set(before)) == len(before) or len(before) < 2)


def _fits(given: Tensor, output: Tensor) -> bool:
    return (given.dtype, given.size) == (output.dtype, output.size)
