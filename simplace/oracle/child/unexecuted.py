"""What a file holds is data: its functions are placed, and none of them runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorflow.core.framework import types_pb2
from tensorflow.python.framework import dtypes, errors_impl

from simplace.oracle.child import kernel_types
from simplace.oracle.child.function_calls import Call, FunctionCalls, _Kind, code_of
from simplace.oracle.child.functions import shown_name

_HARMLESS = frozenset({"Const", "Identity", "NoOp"})
_CALLS = frozenset({"PartitionedCall", "StatefulPartitionedCall"})
_REACHES_OUT = "debug_urls"  # an attribute of ops that hand their input to a file or a server


class UnexecutedCalls(FunctionCalls):
    """Take calls of functions; each is cancelled before it begins, when it has been placed."""

    def _run_first(self, kind: _Kind, inputs: Sequence[Any], call: Call) -> Any:
        """Let TensorFlow place a function, and return made-up values."""
        name = kind.function
        if self._only_makes_resources(name):
            return super()._run_first(kind, inputs, call)
        if any(output.dtype == dtypes.resource for output in self._functions.outputs(name)):
            message = f"{shown_name(name)} would have to run, for it returns a resource; what a file holds is not run"
            raise errors_impl.UnimplementedError(None, None, message)
        if self._is_compiled(name):
            self._remark_compiled(name)
        else:
            attempt = self._attempt(kind, call, is_cancelled=True)
            if attempt.error is not None and code_of(attempt.error) != errors_impl.CANCELLED:
                raise attempt.error
        return self._make_up(name, inputs, {})

    def _only_makes_resources(self, name: str) -> bool:
        """Return whether a function does nothing but make handles of tables and the like, which loading needs."""
        _, reached = self._functions.library(name)
        return all(_is_harmless(node.op) for one in reached for node in self._functions.definition(one).node_def)


def silence_debug_ops(nodes: Any) -> None:
    """Take from nodes the files and servers that they would write to.

    TensorFlow evaluates constants while it imports a graph, to know shapes, and such ops may be among them.
    """
    for node in nodes:
        if _REACHES_OUT in node.attr:
            node.attr[_REACHES_OUT].list.Clear()


def _is_harmless(op: str) -> bool:
    """Return whether an op does nothing that could be felt outside the process, as far as its own kernel goes."""
    definition = kernel_types.find_op_def(op)
    if op in _HARMLESS or op in _CALLS:
        return True
    if definition is None or any(attr.type in ("func", "list(func)") for attr in definition.attr):
        return False
    makes = [arg.type for arg in definition.output_arg]
    return set(makes) == {types_pb2.DT_RESOURCE}
