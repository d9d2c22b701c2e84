"""Turn a library function into the graph of its body.

Mirrors `InstantiateFunction` of tensorflow/core/framework/function.cc and `FunctionBody` of
tensorflow/core/common_runtime/function_body.cc.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from simplace.errors import TargetError
from simplace.graph.builder import CONTROL, GraphBuilder, Node
from simplace.graph.dtypes import DataType, base_type
from simplace.graph.node_def import FuncRef, FunctionDef, NodeDef
from simplace.graph.op_kinds import INTS_ON_DEVICE, is_arg, is_retval
from simplace.lowering.graph_constructor import NodeDraft, assemble_graph, wrong_input_count
from simplace.lowering.op_signatures import Signatures

# What a name in the body stands for: the drafts and output slots of its tensors, in order.
Tensors = list[tuple[int, int]]


@dataclass(slots=True)
class Body:
    """Record of a function's graph with its arguments and results by index, and the nodes that must run, by id.

    `needs_entry` holds the ids of the nodes that nothing in the body holds back until the call runs.
    """

    name: str
    graph: GraphBuilder
    args: list[Node]
    results: list[Node]
    control_results: list[Node]
    needs_entry: set[int]
    names: set[str]


def instantiate_function(function: FunctionDef, attrs: Mapping[str, Any], signatures: Signatures) -> Body:
    """Build the body of a function; `attrs` are those of the call, which fill placeholders such as `$T`.

    Node order before sorting: an `_Arg` per input, the nodes as written, a `_Retval` per output. Raises `TargetError`
    for a body that refers to something it does not have.
    """
    _refuse_unknown_types(function)
    on_device = bool(function.attrs.get(INTS_ON_DEVICE) or attrs.get(INTS_ON_DEVICE))
    drafts = _argument_drafts(function, on_device)
    tensors = _argument_names(function)
    names = {arg.name: i for i, arg in enumerate(function.inputs)}
    for node in function.nodes:
        if node.name in names:
            raise TargetError(f"function {function.name!r} has two nodes or arguments called {node.name!r}")
        names[node.name] = len(drafts)
        draft = _node_draft(node, function, attrs, signatures)
        for arg, first, stop in signatures.outputs_of(node.op, draft.attrs):
            slots = [(len(drafts), slot) for slot in range(first, stop)]
            tensors[f"{node.name}:{arg}"] = slots
            for k, slot in enumerate(slots):
                tensors[f"{node.name}:{arg}:{k}"] = [slot]
        drafts.append(draft)
    for node, draft in zip(function.nodes, drafts[len(function.inputs) :], strict=True):
        _find_inputs(node, draft, tensors, names, function)
    drafts += _result_drafts(function, tensors, on_device)
    return _collect_body(function, assemble_graph(drafts, signatures, function.name), signatures)


def _refuse_unknown_types(function: FunctionDef) -> None:
    for arg in (*function.inputs, *function.outputs):
        if base_type(arg.dtype) not in DataType._value2member_map_:
            raise TargetError(
                f"argument {arg.name!r} of function {function.name!r} has the type number {int(arg.dtype)}, which is "
                "not a TensorFlow DataType"
            )


def is_template(function: FunctionDef) -> bool:
    """Return whether the attributes of a call decide what is in the body."""
    return any(_has_placeholder(value) for node in function.nodes for value in node.attrs.values())


def _has_placeholder(value: Any) -> bool:
    if isinstance(value, FuncRef):
        return any(map(_has_placeholder, value.attrs.values()))
    if isinstance(value, tuple):
        return any(isinstance(item, FuncRef) and _has_placeholder(item) for item in value)
    return isinstance(value, str)


def _argument_drafts(function: FunctionDef, on_device: bool) -> list[NodeDraft]:
    drafts = []
    for i, arg in enumerate(function.inputs):
        op = "_DeviceArg" if on_device and arg.dtype == DataType.DT_INT32 else "_Arg"
        attrs = {"T": arg.dtype, "index": i, **function.arg_attrs.get(i, {})}
        drafts.append(NodeDraft(arg.name, op, "", attrs, ((), (int(arg.dtype),))))
    return drafts


def _argument_names(function: FunctionDef) -> dict[str, Tensors]:
    tensors: dict[str, Tensors] = {}
    for i, arg in enumerate(function.inputs):
        tensors[arg.name] = tensors[f"{arg.name}:0"] = [(i, 0)]
    for i, arg in enumerate(function.inputs):
        base, k = _list_element(arg.name)
        if base and base not in tensors:  # an element of a list argument, written "<list>:<k>" in the body
            tensors[f"{base}:{k}"] = [(i, 0)]
    return tensors


def _list_element(name: str) -> tuple[str, int]:
    """Split the name that the importer gives to an element of a list argument.

    >>> _list_element("values_3"), _list_element("x")
    (('values', 3), ('', 0))
    """
    base, underscore, number = name.rpartition("_")
    return (base, int(number)) if underscore and number.isdigit() else ("", 0)


def _node_draft(
    node: NodeDef, function: FunctionDef, call_attrs: Mapping[str, Any], signatures: Signatures
) -> NodeDraft:
    written = node.attrs
    if any(map(_has_placeholder, written.values())):
        written = {key: _substitute_placeholders(value, call_attrs, node, function) for key, value in written.items()}
    attrs = signatures.with_defaults(node.op, written, node.name)
    return NodeDraft(node.name, node.op, node.device, attrs, signatures.types_of(node.op, attrs, node.name))


def _substitute_placeholders(value: Any, call_attrs: Mapping[str, Any], node: NodeDef, function: FunctionDef) -> Any:
    """Fill a placeholder, which an importer leaves as a `str`, from the call (SubstitutePlaceholders)."""
    if isinstance(value, FuncRef):
        return FuncRef(
            value.name, {key: _substitute_placeholders(v, call_attrs, node, function) for key, v in value.attrs.items()}
        )
    if isinstance(value, tuple):
        return tuple(
            _substitute_placeholders(item, call_attrs, node, function) if isinstance(item, FuncRef) else item
            for item in value
        )
    if not isinstance(value, str):
        return value
    if value not in call_attrs:
        raise TargetError(
            f"node {node.name!r} of function {function.name!r} refers to the attribute {value!r} of the call, "
            "which the call does not have"
        )
    return call_attrs[value]


def _find_inputs(
    node: NodeDef, draft: NodeDraft, tensors: Mapping[str, Tensors], names: Mapping[str, int], function: FunctionDef
) -> None:
    data: list[tuple[int, int]] = []
    control: list[int] = []
    for text in node.inputs:
        if text.startswith("^"):
            position = names.get(text[1:])
            if position is None:
                raise _missing_reference_error(text, f"node {node.name!r}", function)
            control.append(position)
            continue
        found = tensors.get(text)
        if found is None:
            raise _missing_reference_error(text, f"node {node.name!r}", function)
        data += found
    if len(data) != len(draft.types[0]):
        raise wrong_input_count(draft.name, draft.op, len(data), len(draft.types[0]), function.name)
    draft.data, draft.control = data, control


def _result_drafts(function: FunctionDef, tensors: Mapping[str, Tensors], on_device: bool) -> list[NodeDraft]:
    drafts = []
    for i, output in enumerate(function.outputs):
        name, k = output.name, None
        if name not in function.ret:
            name, k = _list_element(name)
        text = function.ret.get(name)
        found = None if text is None else tensors.get(text)
        if found is None or len(found) <= (k or 0):
            raise _missing_reference_error(text or output.name, f"result {output.name!r}", function)
        op = "_DeviceRetval" if on_device and output.dtype == DataType.DT_INT32 else "_Retval"
        suffix = "" if k is None or len(found) == 1 else f"_{k}"
        attrs = {"T": output.dtype, "index": i}
        types = ((int(output.dtype),), ())
        drafts.append(NodeDraft(f"{name}_RetVal{suffix}", op, "", attrs, types, [found[k or 0]]))
    return drafts


def _missing_reference_error(text: str, where: str, function: FunctionDef) -> TargetError:
    return TargetError(f"{where} of function {function.name!r} refers to {text!r}, which the function does not have")


def _collect_body(function: FunctionDef, graph: GraphBuilder, signatures: Signatures) -> Body:
    must_run = set(function.control_ret.values())
    body = Body(function.name, graph, [], [], [], set(), set())
    for node in graph.op_nodes():
        body.names.add(node.name)
        if is_arg(node.op):
            body.args.append(node)
        elif _needs_entry(node, signatures):
            body.needs_entry.add(node.id)
        if is_retval(node.op):
            body.results.append(node)
        if node.name in must_run:
            body.control_results.append(node)
    body.args.sort(key=_argument_index)
    body.results.sort(key=_argument_index)
    return body


def _needs_entry(node: Node, signatures: Signatures) -> bool:
    inside = [edge for edge in node.in_edges if not edge.src.is_source_or_sink]
    return not inside or (signatures.is_call(node.op) and all(edge.src_slot != CONTROL for edge in inside))


def _argument_index(node: Node) -> int:
    return int(node.attrs["index"])
