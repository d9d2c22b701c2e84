"""The inputs, outputs and default attributes of every op a graph may use, library functions included.

Mirrors `FunctionLibraryDefinition::LookUp` of tensorflow/core/framework/function.cc, where a library function is an
op like any other.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any

from simplace.errors import TargetError, UnknownOpError
from simplace.graph.node_def import FuncRef, FunctionDef
from simplace.graph.op_kinds import SYMBOLIC_GRADIENT, is_partitioned_call
from simplace.kernels.registry import (
    AttrError,
    KernelTable,
    OpDef,
    argument_ranges,
    argument_types,
    type_attrs,
    with_defaults,
)

Types = tuple[tuple[int, ...], tuple[int, ...]]
Ranges = tuple[tuple[str, int, int], ...]


class Signatures:
    """Answer for the ops of a kernel table and the functions of a library; a function hides an op of its name."""

    def __init__(self, table: KernelTable, library: Mapping[str, FunctionDef]) -> None:
        self.table = table
        self.library = library
        self._function_types = {name: function.call_types for name, function in library.items()}
        self._type_attrs: dict[str, tuple[str, ...]] = {}
        self._known: dict[tuple[str, tuple[Any, ...]], tuple[Types, Ranges]] = {}
        self._completed: dict[tuple[str, int], tuple[Mapping[str, Any], Types]] = {}
        self._alive: list[Mapping[str, Any]] = []  # what `_completed` knows by id, so that no other can come to have it

    def __call__(self, op: str, attrs: Mapping[str, Any]) -> Types:
        """Return (input types, output types) of a node of this op."""
        return self.types_of(op, attrs)

    def is_call(self, op: str) -> bool:
        """Return whether TensorFlow counts a node of this op as a function call (Node::IsFunctionCall)."""
        return is_partitioned_call(op) or op in self.library or op == SYMBOLIC_GRADIENT

    def function(self, ref: object, node: str) -> FunctionDef:
        """Look up the function that an attribute of `node` names; raise `TargetError` if the library lacks it."""
        if not isinstance(ref, FuncRef):
            raise TargetError(f"node {node!r} has no function attribute, which its op requires")
        found = self.library.get(ref.name)
        if found is None:
            raise TargetError(f"node {node!r} needs the function {ref.name!r}, which the graph's library does not have")
        return found

    def branch(self, ref: object, node: str, inputs: int, outputs: int) -> FuncRef:
        """Return the reference to a branch, condition or body; raise `TargetError` unless it fits its node."""
        function = self.function(ref, node)
        assert isinstance(ref, FuncRef), "the look-up above has refused anything else"
        if len(function.inputs) != inputs or len(function.outputs) != outputs:
            raise TargetError(
                f"node {node!r} needs a function with {inputs} inputs and {outputs} outputs, "
                f"but {ref.name!r} has {len(function.inputs)} and {len(function.outputs)}"
            )
        return ref

    def complete(self, op: str, attrs: Mapping[str, Any], node: str) -> tuple[Mapping[str, Any], Types]:
        """Return the attributes with their defaults, and the types; once for nodes that share one mapping.

        `node` is for the error, `UnknownOpError` or `TargetError`.
        """
        key = (op, id(attrs))
        found = self._completed.get(key)
        if found is None:
            filled = self.with_defaults(op, attrs, node)
            found = self._completed[key] = (filled, self.types_of(op, filled, node))
            self._alive.append(attrs)
        return found

    def with_defaults(self, op: str, attrs: Mapping[str, Any], node: str = "") -> Mapping[str, Any]:
        """Add the defaults of the attributes that a node lacks."""
        return attrs if op in self.library else with_defaults(self._op(op, node), attrs)

    def types_of(self, op: str, attrs: Mapping[str, Any], node: str = "") -> Types:
        """Return (input types, output types); `node` is for the error, `UnknownOpError` or `TargetError`."""
        if op in self.library:
            return self._function_types[op]
        return self._look_up(op, attrs, node)[0]

    def outputs_of(self, op: str, attrs: Mapping[str, Any], node: str = "") -> Ranges:
        """Return each output argument with its first slot and the slot after its last."""
        if op in self.library:
            return _function_outputs(self.library[op])
        return self._look_up(op, attrs, node)[1]

    def is_stateful(self, op: str) -> bool:
        """Return whether the op is declared stateful."""
        if op in self.library:
            return self.library[op].is_stateful
        return self._op(op, "").is_stateful

    def _op(self, op: str, node: str) -> OpDef:
        found = self.table.op(op)
        if found is None:
            from simplace.kernels.op_kernels import hint_at_op

            where = f"node {node!r}" if node else "a node"
            raise UnknownOpError(
                f"{where} has the op {op!r}, which neither the kernel table {self.table.name} nor the graph's "
                f"library knows; {hint_at_op(self.table, op)}"
            )
        return found

    def _look_up(self, op: str, attrs: Mapping[str, Any], node: str) -> tuple[Types, Ranges]:
        names = self._type_attrs.get(op)
        if names is None:
            names = self._type_attrs[op] = type_attrs(self._op(op, node))
        key = (op, tuple([attrs.get(name) for name in names]))
        try:
            found = self._known.get(key)
        except TypeError:  # a value of the wrong kind, which the computation refuses in words
            return self._compute(op, attrs, node)
        if found is None:
            found = self._known[key] = self._compute(op, attrs, node)
        return found

    def _compute(self, op: str, attrs: Mapping[str, Any], node: str) -> tuple[Types, Ranges]:
        op_def = self._op(op, node)
        try:
            return argument_types(op_def, attrs), argument_ranges(op_def, op_def.outputs, attrs)
        except AttrError as error:
            raise TargetError(f"node {node!r}: {error}" if node else str(error)) from error


def _function_outputs(function: FunctionDef) -> Ranges:
    """Name the outputs as `ret` does: those that the importer made of one list argument are one again."""
    names = [arg.name if arg.name in function.ret else arg.name.rpartition("_")[0] for arg in function.outputs]
    ranges = []
    start = 0
    for name, same in groupby(names):
        stop = start + sum(1 for _ in same)
        ranges.append((name, start, stop))
        start = stop
    return tuple(ranges)
