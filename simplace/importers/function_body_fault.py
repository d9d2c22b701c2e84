"""Check that the body of a function is valid, with TensorFlow's messages.

Mirrors `InstantiateFunction` of tensorflow/core/framework/function.cc, and what `ConvertNodeDefsToGraph` checks of its
result. An import does both for functions that are called, since it infers their shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import Any

from simplace.errors import TargetError
from simplace.graph import dtypes
from simplace.graph.dtypes import DataType, TypeNumber
from simplace.graph.node_def import FuncRef, FunctionDef, NeededAttr, NodeDef
from simplace.importers.node_names import find_name_fault, is_internal_name
from simplace.kernels.node_def_util import find_node_fault
from simplace.kernels.registry import ArgSpec, AttrError, OpDef, argument_ranges, types_of, with_defaults

LookUp = Callable[[str], OpDef | None]  # an op, or a function as one
Types = tuple[int, ...]


def op_of(function: FunctionDef) -> OpDef:
    """Return a function as an op without attributes."""
    inputs, outputs = (
        tuple(ArgSpec(arg.name, arg.dtype, is_ref=arg.is_ref) for arg in args)
        for args in (function.inputs, function.outputs)
    )
    return OpDef(function.name, inputs, outputs)


def find_body_fault(function: FunctionDef, attrs: Mapping[str, Any], look_up: LookUp) -> str:
    """Return why a function cannot be instantiated with the attributes of a call, "" if it can."""
    for name, has_default in function.signature_attrs:
        if name not in attrs and not has_default:
            return f"Attr {name} is not found from Op<name={function.name}>"
    tensors: dict[str, Types] = {}
    arguments = {arg.name for arg in function.inputs}
    for arg in function.inputs:
        if arg.name in tensors:
            return f"Duplicated arg name: {arg.name} In {arg}"
        tensors[arg.name] = tensors[f"{arg.name}:0"] = (int(arg.dtype),)
        base, _, number = arg.name.rpartition("_")
        if (
            number.isdigit() and base not in arguments
        ):  # an element of a list argument, which the importer has taken apart
            tensors.setdefault(f"{base}:{number}", (int(arg.dtype),))
            tensors[base] = (*tensors.get(base, ()), int(arg.dtype))
    lacking = [need for need in function.needs if need.kind and need.name not in attrs]
    of_results = [need for need in lacking if need.is_output]
    fault = next((_describe_lack(need) for need in lacking if not need.is_output), "")
    if fault:
        return fault
    try:
        bound = [_bind_attrs(node, attrs, look_up) for node in function.nodes]
        for node in bound:
            fault = _add_outputs(node, look_up, tensors)
            if fault:
                return f"{fault} In {{{{node {node.name}}}}}"
        names = {key.partition(":")[0] for key in tensors}
        for node in bound:
            fault = _find_inputs_fault(node, look_up, tensors, names)
            if fault:
                return f"{fault} In {{{{node {node.name}}}}}"
        return (
            _find_ret_fault(function, tensors, of_results)
            or _find_name_fault(function)
            or _find_nodes_fault(bound, look_up)
        )
    except _FaultError as fault_found:
        return str(fault_found)


def _describe_lack(need: NeededAttr) -> str:
    return f"{need.kind} attr not found: {need.name} In {'function output ' * need.is_output}{need.shown}"


class _FaultError(Exception):
    """Carry a reason out of the middle of a computation."""


def _find_op(name: str, look_up: LookUp) -> OpDef:
    found = look_up(name)
    if found is None:
        raise _FaultError(f"Op type not registered '{name}'")
    return found


def _bind_attrs(node: NodeDef, attrs: Mapping[str, Any], look_up: LookUp) -> NodeDef:
    """Fill placeholders from the call, and add defaults."""
    op_def = _find_op(node.op, look_up)
    written = {name: _substitute_placeholders(value, attrs) for name, value in node.attrs.items()}
    for name, value in written.items():  # a type is read from a field that another kind of value leaves at 0
        if op_def.attr_types.get(name) == "type" and not isinstance(value, (DataType, TypeNumber)):
            written[name] = DataType.DT_INVALID
    return node._replace(attrs=with_defaults(op_def, written))


def _substitute_placeholders(value: Any, attrs: Mapping[str, Any]) -> Any:
    if isinstance(value, FuncRef):
        return FuncRef(value.name, {name: _substitute_placeholders(one, attrs) for name, one in value.attrs.items()})
    if value is None:
        raise _FaultError("Failed to bind all placeholders in <Unknown AttrValue type>")
    if not isinstance(value, str) or not value:
        return value
    if value not in attrs:
        raise _FaultError(f"Failed to bind all placeholders in ${value}")
    return attrs[value]


def _argument_types(op_def: OpDef, args: tuple[ArgSpec, ...], node: NodeDef) -> Types:
    """Return types; a missing attribute is reported as `ArgNumType` does."""
    for arg in args:
        for name in (arg.type_attr, arg.type_list_attr, arg.number_attr):
            if name and name not in node.attrs:
                raise _FaultError(f"type attr not found: {name} In {{{{node {node.name}}}}}")
    try:
        return types_of(op_def, args, node.attrs)
    except AttrError as error:
        raise TargetError(f"node {node.name!r}: {error}") from error


def _add_outputs(node: NodeDef, look_up: LookUp, tensors: dict[str, Types]) -> str:
    op_def = _find_op(node.op, look_up)
    types = _argument_types(op_def, op_def.outputs, node)
    added = {f"{node.name}:{name}": types[start:stop] for name, start, stop in _output_ranges(op_def, node)}
    added = added or {node.name: ()}
    for name, own in added.items():
        each = {f"{name}:{k}": (dtype,) for k, dtype in enumerate(own)}
        for key, value in {name: own, **each}.items():
            if key in tensors:
                return f"Duplicated ret name: {key}"
            tensors[key] = value
    return ""


def _output_ranges(op_def: OpDef, node: NodeDef) -> tuple[tuple[str, int, int], ...]:
    return argument_ranges(op_def, op_def.outputs, node.attrs)


def _find_inputs_fault(node: NodeDef, look_up: LookUp, tensors: Mapping[str, Types], declared: Set[str]) -> str:
    op_def, at = _find_op(node.op, look_up), 0
    for arg in op_def.inputs:
        wanted, j = _argument_types(op_def, (arg,), node), 0
        while j < len(wanted):
            if at >= len(node.inputs):
                return f"Attempt to access beyond input size: {at} >= {len(node.inputs)}"
            text = node.inputs[at]
            found = tensors.get(text)
            if found is None:
                return f"input {text} is not found: {{{{node {node.name}}}}}"
            if len(found) > len(wanted) - j:
                return f"Input {text} too long for {arg.name}"
            for k, dtype in enumerate(found):
                if dtype != wanted[j]:
                    names = dtypes.name_in_messages(wanted[j]), dtypes.name_in_messages(dtype)
                    return f"input {arg.name}[{j}] expected type {names[0]} != {names[1]}, the type of {text}[{k}]"
                j += 1
            at += 1
    for i, text in enumerate(node.inputs[at:], at):
        if not text.startswith("^"):
            return f"Expected input[{i}] == '{text}' to be a control input."
        if text[1:] not in declared and text[1:] not in tensors:
            return f"input[{i}] == '{text}', is not found."
    return ""


def _find_ret_fault(function: FunctionDef, tensors: Mapping[str, Types], lacking: Sequence[NeededAttr]) -> str:
    """Find what is wrong with a result, in their order; `lacking` are the attributes that their types need."""
    for arg in function.outputs:
        need = next((need for need in lacking if need.argument == arg.name), None)
        if need is not None:
            return _describe_lack(need)
        name = arg.name if arg.name in function.ret else arg.name.rpartition("_")[0]
        where = f"In function output {arg}"
        if name not in function.ret:
            return f"Return {arg.name} missing. {where}"
        found = tensors.get(function.ret[name])
        if found is None:
            return f"Return {arg.name} -> {function.ret[name]} is not found. {where}"
        if name == arg.name and found != (int(arg.dtype),):
            listed = ", ".join(map(dtypes.name_in_messages, found))
            return f"Invalid ret types {arg.name} : {dtypes.name_in_messages(arg.dtype)} vs. {listed} {where}"
    return _describe_lack(lacking[0]) if lacking else ""


def _find_name_fault(function: FunctionDef) -> str:
    seen: set[str] = set()
    faults = (find_name_fault(name, seen, is_internal_name) for name in _names_of_body(function))
    return next(filter(None, faults), "")


def _names_of_body(function: FunctionDef) -> Iterator[str]:
    """Yield the names of the nodes that are made of arguments, nodes and results."""
    yield from (arg.name for arg in function.inputs)
    yield from (node.name for node in function.nodes)
    for arg in function.outputs:
        base, _, number = (arg.name, "", "0") if arg.name in function.ret else arg.name.rpartition("_")
        yield f"{base}_RetVal" + f"_{number}" * (number != "0")


def _find_nodes_fault(nodes: list[NodeDef], look_up: LookUp) -> str:
    for node in nodes:
        op_def = _find_op(node.op, look_up)
        wanted = len(_argument_types(op_def, op_def.inputs, node))
        fault = find_node_fault(node.name, op_def, node.attrs, wanted)
        if fault:
            return fault
    return ""
