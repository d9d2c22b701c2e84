"""Check that an op allows an attribute's value and is not removed, with TensorFlow's messages.

Mirrors `ValidateAttrValue` and `CheckOpDeprecation` of tensorflow/core/framework/op_def_util.cc.
"""

from __future__ import annotations

from simplace.graph import dtypes
from simplace.graph.node_def import AttrValue
from simplace.kernels.attr_value_util import find_type_fault
from simplace.kernels.registry import OpDef


def find_value_fault(value: AttrValue, name: str, op_def: OpDef) -> str:
    """Return why an op does not allow a value of its attribute `name`, "" if it does.

    >>> op_def = OpDef("Foo", attr_types={"N": "int"}, minimums={"N": 1})
    >>> find_value_fault(0, "N", op_def), find_value_fault(0.5, "N", op_def)[-27:]
    ("Value for attr 'N' of 0 must be at least minimum 1", "'int' expected for attr 'N'")
    """
    fault = find_type_fault(value, op_def.attr_types[name])
    if fault:
        return f"{fault} for attr '{name}'"
    minimum = op_def.minimums.get(name)
    if minimum is not None:
        size, what = (value, "Value") if isinstance(value, int) else (len(value or ()), "Length")
        if size < minimum:
            return f"{what} for attr '{name}' of {size} must be at least minimum {minimum}"
    allowed = op_def.allowed.get(name)
    if allowed is None:
        return ""
    wrong = [one for one in (value if isinstance(value, tuple) else (value,)) if one not in allowed and one is not None]
    if not wrong:
        return ""
    listed = ", ".join(map(_format_value, allowed))
    return f"Value for attr '{name}' of {_format_value(wrong[0])} is not in the list of allowed values: {listed}"


def find_deprecation_fault(op_def: OpDef, producer: int) -> str:
    """Return why a graph that a version of TensorFlow produced may not have the op any more, "" if it may."""
    if op_def.removed_in is None or producer < op_def.removed_in:
        return ""
    return (
        f"Op {op_def.name} is not available in GraphDef version {producer}. It has been removed in version "
        f"{op_def.removed_in}. {op_def.instead}."
    )


def _format_value(value: AttrValue) -> str:
    return f'"{value.decode(errors="replace")}"' if isinstance(value, bytes) else dtypes.name_in_messages(value)
