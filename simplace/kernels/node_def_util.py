"""Check that a node has the attributes and the number of inputs that its op requires, with TensorFlow's messages.

Mirrors `ValidateNodeDef` of tensorflow/core/framework/node_def_util.cc; of an op, a message has the name alone.
"""

from __future__ import annotations

from collections.abc import Mapping

from simplace.graph import dtypes
from simplace.graph.node_def import AttrValue
from simplace.kernels.op_def_util import find_value_fault
from simplace.kernels.registry import OpDef, argument_counts, types_of

_SHOWN_TYPES = 1000
_MOST = (1 << 31) - 1  # of the tensors of an argument, counted in 32 bits


def find_node_fault(node: str, op_def: OpDef, attrs: Mapping[str, AttrValue], inputs: int) -> str:
    """Return why a node of an op cannot have these attributes, defaults included, or so many data inputs; "" if it can.

    >>> find_node_fault("a", OpDef("Foo", attr_types={"T": "type"}), {}, 0)
    "NodeDef missing attr 'T' from Op<name=Foo>; NodeDef: {{node a}}"
    >>> find_node_fault("a", OpDef("Foo"), {}, 2)
    "NodeDef expected inputs '' do not match 2 inputs specified; Op<name=Foo>; NodeDef: {{node a}}"
    """
    where = f"NodeDef: {{{{node {node}}}}}"
    for name, value in attrs.items():
        if name not in op_def.attr_types or name[:1] == "_" or (isinstance(value, str) and value):  # a placeholder
            continue
        fault = find_value_fault(value, name, op_def)
        if fault:
            return f"{fault}; {where}; Op<name={op_def.name}>"
    if not op_def.attr_types.keys() <= attrs.keys():
        missing = sorted(op_def.attr_types.keys() - attrs.keys())
        named = "', '".join(missing)
        return f"NodeDef missing attr{'s'[: len(missing) - 1]} '{named}' from Op<name={op_def.name}>; {where}"
    for arg in (*op_def.inputs, *op_def.outputs):
        count = attrs.get(arg.number_attr) if arg.number_attr else 0
        if isinstance(count, int) and not -_MOST - 1 <= count <= _MOST:
            return f"Number of outputs is too big: {count}"
    wanted = sum(argument_counts(op_def.inputs, attrs))
    if wanted == inputs:
        return ""
    listed = _list_types(op_def, attrs, wanted)
    return f"NodeDef expected inputs '{listed}' do not match {inputs} inputs specified; Op<name={op_def.name}>; {where}"


def _list_types(op_def: OpDef, attrs: Mapping[str, AttrValue], count: int) -> str:
    if count > _SHOWN_TYPES:
        return f"{count} tensors"
    return ", ".join(map(dtypes.name_in_messages, types_of(op_def, op_def.inputs, attrs)))
