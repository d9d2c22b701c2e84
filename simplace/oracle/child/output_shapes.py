"""The shapes of a call's outputs, inferred from those of its inputs by TensorFlow's own shape functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from simplace.graph.constant_numbers import Numbers
from simplace.oracle.child.tensors import describe_variable
from simplace.oracle.child.tf_private import function_def_to_graph

NOT_IMPORTED = (ValueError, tf.errors.OpError)  # raised where shapes do not fit, or an op has been removed


def infer_output_shapes(
    definition: Any, inputs: Sequence[Any], library: Iterable[Any], traced: Sequence[Any]
) -> list[Any]:
    """Infer the shape of each output of a function, known as `traced` so far; `library` has the functions it calls.

    A first size that stays unknown is that of the first input that the function takes with any number of rows. Where
    TensorFlow finds that the shapes do not fit, as the call itself will, they stay as traced.
    """
    graph, names = function_def_to_graph.function_def_to_graph_def(definition)
    graph.library.function.extend(library)
    rows = [_describe_input(node, tensor) for node, tensor in zip(graph.node, inputs, strict=False)]
    ends = [names[definition.ret[arg.name]] for arg in definition.signature.output_arg]
    with tf.Graph().as_default():
        try:
            made = tf.graph_util.import_graph_def(graph, name="", return_elements=ends)
        except NOT_IMPORTED:
            return list(traced)
    batch = next((each for each in rows if each is not None), None)
    return [_with_rows(_merge_shapes(before, tensor.shape), batch) for before, tensor in zip(traced, made, strict=True)]


def _describe_input(node: Any, tensor: Any) -> int | None:
    """Set a placeholder's shape to that of a call's input; return its rows if the function takes any number of them."""
    if tensor.dtype == tf.resource:
        spec = describe_variable(tensor)
        if spec is not None:
            make_handle(node, spec)
        return None
    traced = tf.TensorShape(node.attr["shape"].shape)
    node.attr["shape"].shape.CopyFrom(tensor.shape.as_proto())
    is_open = traced.rank is None or (traced.rank > 0 and traced.as_list()[0] is None)
    return int(tensor.shape[0]) if is_open and tensor.shape.rank else None


def make_handle(node: Any, spec: Any) -> None:
    """Turn a placeholder into a VarHandleOp: shape functions read a variable's dtype and shape from it."""
    node.op = "VarHandleOp"
    node.attr.clear()
    node.attr["dtype"].type = spec.dtype.as_datatype_enum
    node.attr["shape"].shape.CopyFrom(spec.shape.as_proto())


def make_constant(node: Any, dtype: int, value: Numbers) -> None:
    """Turn a placeholder into a Const: shape functions read sizes from it."""
    node.op = "Const"
    node.attr.clear()
    node.attr["dtype"].type = dtype
    node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(np.array(value, tf.as_dtype(dtype).as_numpy_dtype)))


def _merge_shapes(traced: Any, inferred: Any) -> Any:
    return traced.merge_with(inferred) if traced.is_compatible_with(inferred) else traced


def _with_rows(shape: Any, rows: int | None) -> Any:
    if rows is None or not shape.rank or shape.as_list()[0] is not None:
        return shape
    return tf.TensorShape([rows, *shape.as_list()[1:]])
