"""Functions of a file, such as a SavedModel: they are placed, and none of them runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from simplace.graph.function_names import shown_name
from simplace.oracle.child import kernel_types
from simplace.oracle.child.failures import find_code
from simplace.oracle.child.function_calls import Calls, FunctionCalls, _Kind, cancel_call
from simplace.oracle.child.loaded_graphs import list_node_defs

_HARMLESS = frozenset({"Const", "Identity", "NoOp"})
_CALLS = frozenset({"PartitionedCall", "StatefulPartitionedCall"})
_REACHES_OUT = "debug_urls"  # an attribute of ops that hand their input to a file or a server


class UnexecutedCalls(FunctionCalls):
    """Calls of functions that are cancelled before they begin, as soon as they are placed."""

    def _run_first(self, kind: _Kind, inputs: Sequence[Any], call: Calls) -> Any:
        """Make TensorFlow place a function, and return placeholder values."""
        name = kind.function
        if self._only_makes_resources(name):
            return super()._run_first(kind, inputs, call)
        if any(output.dtype == tf.resource for output in self._functions.outputs(name)):
            message = f"{shown_name(name)} returns a resource, so it would have to run; functions of a file are not run"
            raise tf.errors.UnimplementedError(None, None, message)
        if self._is_compiled(name):
            self._record_compiled(kind, inputs, "", None, is_asked=False)
        else:
            attempt = self._attempt(kind, inputs, cancel_call(call.placing), is_for_placement=True)
            if attempt.error is not None and find_code(attempt.error) != tf.errors.CANCELLED:
                attempt.raise_error()
        return self._make_up(name, inputs, {})

    def _only_makes_resources(self, name: str) -> bool:
        """Return whether a function only makes handles of tables and similar resources, which loading needs."""
        _, reached = self._functions.library(name)
        return all(_is_harmless(node.op) for one in reached for node in self._functions.definition(one).node_def)


def silence_debug_ops(graph: Any) -> None:
    """Remove from the nodes of a GraphDef the files and servers that they would write to.

    TensorFlow evaluates constants while it imports a graph, to know shapes, and such ops may be among them.
    """
    for node in list_node_defs(graph):
        if _REACHES_OUT in node.attr:
            node.attr[_REACHES_OUT].list.Clear()


def _is_harmless(op: str) -> bool:
    """Return whether an op has no effect outside the process, as far as its own kernel goes."""
    definition = kernel_types.find_op_def(op)
    if op in _HARMLESS or op in _CALLS:
        return True
    if definition is None or any(attr.type in ("func", "list(func)") for attr in definition.attr):
        return False
    makes = [arg.type for arg in definition.output_arg]
    return set(makes) == {tf.resource.as_datatype_enum}
