"""The inputs that decide where an eager op runs: a resource, or small integers on the CPU.

Mirrors tensorflow/core/common_runtime/eager/placement_utils.cc.
"""

from __future__ import annotations

from simplace.graph.dtypes import DataType
from simplace.placement.exemptions import EXEMPT_FROM_INPUT_COLOCATION
from simplace.program.eager_op import EagerOp

# Ops that make data: it would be slower to copy what they make than to make it on the device (IsPinnableOp).
_NOT_PINNABLE = frozenset(
    """
    RandomUniform RandomUniformInt RandomStandardNormal StatelessRandomUniform StatelessRandomUniformInt
    StatelessRandomUniformFullInt StatelessRandomNormal
    """.split()
)
_XRT = "XRT"  # how ops begin whose handles belong to one device


def pinning_resource(op: EagerOp) -> int:
    """Return the input whose resource fixes the device of an op, -1 for none (MaybePinToResourceDevice)."""
    if op.op in EXEMPT_FROM_INPUT_COLOCATION:
        return -1
    return next((i for i, each in enumerate(op.inputs) if each.dtype == DataType.DT_RESOURCE), -1)


def is_pinned_small(op: EagerOp) -> bool:
    """Return whether an op goes to the CPU since all its inputs are small integers there (MaybePinSmallOpsToCpu)."""
    if op.op in EXEMPT_FROM_INPUT_COLOCATION or op.op in _NOT_PINNABLE or op.op.startswith(_XRT):
        return False
    return bool(op.inputs) and all(each.is_small for each in op.inputs)
