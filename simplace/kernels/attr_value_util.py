"""Check that the value of an attribute has the type that an op declares, with TensorFlow's messages.

Mirrors `AttrValueHasType` of tensorflow/core/framework/attr_value_util.cc.
"""

from __future__ import annotations

from collections.abc import Iterable

from simplace.graph import dtypes
from simplace.graph.dtypes import DataType, TypeNumber
from simplace.graph.node_def import AttrValue, FuncRef, ShapeAttr, TensorInfo

_KINDS: dict[type, str] = {
    bytes: "string", bool: "bool", int: "int", float: "float", DataType: "type", TypeNumber: "type",
    ShapeAttr: "shape", TensorInfo: "tensor", FuncRef: "func", str: "placeholder",
}  # fmt: skip


def find_type_fault(value: AttrValue, expected: str) -> str:
    """Return why a value is not of the kind `expected`, a word of op_def.proto such as "list(type)"; "" if it is.

    >>> find_type_fault(3, "type")
    "AttrValue had value with type 'int' when 'type' expected"
    >>> find_type_fault((), "list(int)"), find_type_fault(None, "list(int)"), find_type_fault(TypeNumber(101), "type")
    ('', '', 'AttrValue must not have reference type value of float_ref')
    """
    if isinstance(value, tuple):
        return _find_list_fault(value, expected)
    if value is None:
        return "" if expected.startswith("list(") else _format_missing_value(expected)
    kind = _KINDS[type(value)]
    if kind == "placeholder":
        return "AttrValue had value with unexpected type 'placeholder'"
    if kind != expected:
        return f"AttrValue had value with type '{kind}' when '{expected}' expected"
    return _find_dtype_fault([value], "has") if kind == "type" else ""


def _find_list_fault(values: tuple[AttrValue, ...], expected: str) -> str:
    for value in values:
        kind = f"list({_KINDS[type(value)]})"
        if kind != expected:
            return f"AttrValue had value with type '{kind}' when '{expected}' expected"
    if not expected.startswith("list("):
        return _format_missing_value(expected)
    return _find_dtype_fault(values, "contains") if expected == "list(type)" else ""


def _format_missing_value(expected: str) -> str:
    return f"AttrValue missing value with expected type '{expected}'"


def _find_dtype_fault(values: Iterable[int], verb: str) -> str:
    for value in values:
        if dtypes.base_type(value) not in DataType._value2member_map_ or value == dtypes.REF_OFFSET:
            return f"AttrValue has invalid DataType enum: {int(value)}"
        if dtypes.is_ref(value):
            return f"AttrValue must not have reference type value of {dtypes.name_in_messages(value)}"
        if value == DataType.DT_INVALID:
            return f"AttrValue {verb} invalid DataType"
    return ""
