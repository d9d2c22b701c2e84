"""A graph that a session can run alone: constants and variables in the place of what a caller would pass.

The nodes keep their names, order and edges, but for calls, which are inlined. An argument that is a tensor, a
placeholder that is fed, and each element of an iterator becomes a Const; the handle of a variable becomes a
VarHandleOp, whose variable gets its value before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from simplace.graph.op_kinds import is_placeholder
from simplace.measure.child.called import Call, CannotRunError, Element, Variable, make_random_value
from simplace.measure.child.inlined_calls import inline_calls

_VARIABLE = "simplace/variable"
_MOST_BYTES = 1 << 30  # a GraphDef ends at 2 GiB


@dataclass(frozen=True)
class Runnable:
    """Record of the graph, the values of its variables by shared name, and remarks on its placeholder values."""

    definition: Any
    variables: dict[str, Any]
    remarks: list[str]


def make_call_runnable(call: Call) -> Runnable:
    """Make the graph of a function's call runnable; raise `CannotRunError` where an input cannot be passed."""
    graph = call.graph
    wanted = [*(tensor.op.name for tensor in graph.outputs), *(op.name for op in graph.control_outputs)]
    definition = graph.as_graph_def()
    if not wanted:
        raise CannotRunError(f"{call.name} has no outputs and no side effects, so TensorFlow would run no op of it")
    pruned = tf.compat.v1.graph_util.extract_sub_graph(definition, sorted(set(wanted)))
    inputs = {tensor.op.name: (tensor, value) for tensor, value in zip(graph.inputs, call.values, strict=True)}
    variables: dict[str, Any] = {}
    iterators: dict[str, Element] = {}
    made = tf.compat.v1.GraphDef(versions=pruned.versions, library=pruned.library)
    remarks = []
    for node in pruned.node:
        if node.name not in inputs:
            made.node.append(node)
            continue
        tensor, value = inputs[node.name]
        if value is None:
            raise CannotRunError(
                f"{call.name} takes {node.name}, which is neither a tensor nor an initialized variable nor an "
                "iterator with a next element; only these can be inputs of a measured step"
            )
        if isinstance(value, Element):
            iterators[node.name] = value
            remarks.append(f"every step gets the same element of the iterator {node.name}")
        elif isinstance(value, Variable):
            made.node.append(_make_handle(node, value, variables))
        else:
            made.node.append(_make_constant(node, value, tensor.dtype))
    if iterators:
        made = _without_iterators(made, iterators)
    made = inline_calls(made, wanted)
    _check_size(made, call.name)
    return Runnable(made, variables, remarks)


def make_graph_runnable(definition: Any, batch: int) -> Runnable:
    """Make a graph from a file runnable: a random value of its declared shape for each placeholder."""
    made = tf.compat.v1.GraphDef()
    made.CopyFrom(definition)
    fed = []
    for node in made.node:
        if not is_placeholder(node.op):
            continue
        dtype, shape = tf.as_dtype(node.attr["dtype"].type), tf.TensorShape(node.attr["shape"].shape)
        if dtype in (tf.resource, tf.variant):
            raise CannotRunError(f"the placeholder {node.name} takes a {dtype.name}, which has no random value")
        node.CopyFrom(_make_constant(node, make_random_value(dtype, shape, batch), dtype))
        fed.append(node.name)
    _check_size(made, "the graph")
    remarks = (
        [f"placeholders ({', '.join(fed[:3])}{', ...' if len(fed) > 3 else ''}) hold random numbers"] if fed else []
    )
    return Runnable(made, {}, remarks)


def _make_constant(node: Any, value: Any, dtype: Any) -> Any:
    made = tf.compat.v1.NodeDef(name=node.name, op="Const", device=node.device)
    made.attr["dtype"].type = dtype.as_datatype_enum
    made.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value, dtype))
    if "_output_shapes" in node.attr:
        made.attr["_output_shapes"].list.shape.append(made.attr["value"].tensor.tensor_shape)
    return made


def _make_handle(node: Any, value: Variable, variables: dict[str, Any]) -> Any:
    name = f"{_VARIABLE}/{node.name}"
    made = tf.compat.v1.NodeDef(name=node.name, op="VarHandleOp", device=node.device)
    made.attr["dtype"].type = tf.as_dtype(value.value.dtype).as_datatype_enum
    made.attr["shape"].shape.CopyFrom(tf.TensorShape(value.value.shape).as_proto())
    made.attr["shared_name"].s = name.encode()
    variables[name] = value.value
    return made


def _without_iterators(definition: Any, iterators: dict[str, Element]) -> Any:
    made = tf.compat.v1.GraphDef(versions=definition.versions, library=definition.library)
    for node in definition.node:
        element = iterators.get(node.input[0].partition(":")[0]) if node.input else None
        if element is None or node.op != "IteratorGetNext":
            made.node.append(node)
            continue
        parts = [f"{node.name}/element_{i}" for i in range(len(element.values))]
        for name, value in zip(parts, element.values, strict=True):
            stand_in = tf.compat.v1.NodeDef(name=name, device=node.device)
            made.node.append(_make_constant(stand_in, value, tf.as_dtype(value.dtype)))
        types = tf.compat.v1.AttrValue()
        types.list.type.extend(node.attr["output_types"].list.type)
        whole = tf.compat.v1.NodeDef(name=node.name, op="IdentityN", device=node.device, input=parts)
        whole.input.extend(name for name in node.input if name.startswith("^"))
        whole.attr["T"].CopyFrom(types)
        made.node.append(whole)
    return made


def _check_size(definition: Any, what: str) -> None:
    if definition.ByteSize() > _MOST_BYTES:
        raise CannotRunError(f"{what} takes {definition.ByteSize():,} bytes of inputs; more than 1 GiB is not measured")
