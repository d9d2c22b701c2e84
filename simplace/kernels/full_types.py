"""The full types of ops' outputs that the registrations construct.

Mirrors the SetTypeConstructor calls in tensorflow/core/ops/*.cc. The constructors are part of each `OpDef`
(`experimental_full_type` of an output), so they come with the captured kernel table; the inference functions are code
and stand in `simplace.placement.type_inference`.
"""

from __future__ import annotations

from collections.abc import Mapping

from simplace.graph.node_def import AttrValue
from simplace.kernels.full_type import UNSET, FullType, is_host, of_dtype, specialize_type
from simplace.kernels.registry import KernelTable, with_defaults

__all__ = ["UNSET", "FullType", "full_type_of", "is_host", "of_dtype", "specialize_type"]


def full_type_of(op: str, attrs: Mapping[str, AttrValue], table: KernelTable | None = None) -> FullType | None:
    """Return the TFT_PRODUCT of the full types of a node's outputs, None for an op without a type constructor.

    An output of which the op declares nothing is `UNSET`. `table` is by default the newest one that is shipped.
    Raise `FullTypeError` where TensorFlow refuses the node for its attributes.

    >>> from simplace.graph.dtypes import DataType
    >>> str(full_type_of("TensorListReserve", {"element_dtype": DataType.DT_STRING}))
    'Product[Array[Tensor[String]]]'
    """
    op_def = (table or KernelTable.shipped()).op(op)
    if op_def is None or all(arg.full_type is None for arg in op_def.outputs):
        return None
    filled = with_defaults(op_def, attrs)
    declared = (arg.full_type for arg in op_def.outputs)
    return FullType("TFT_PRODUCT", tuple(UNSET if one is None else specialize_type(one, filled) for one in declared))
