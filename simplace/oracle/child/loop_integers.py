"""The integers that a loop of functions returns, as far as they are known: its counters, and how long its lists are.

TensorFlow's shape inference does not run loops, so an array that grows in one has no length there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simplace.graph.graph_def import attrs_from_message
from simplace.graph.integer_ops import INTEGER_OPS, WHOLE, Value
from simplace.graph.integer_rounds import IntegerStep, Rounds, order_steps
from simplace.oracle.child.list_shapes import ListShape
from simplace.oracle.child.tf_private import tensor_util

_LARGEST = 16  # elements of a vector that is read

Ref = tuple[str, str]  # the function ("" for the loop's variables), and the name of a tensor there


@dataclass(frozen=True)
class ImportedBody:
    """Record of an imported function: the names of its arguments, its results, and what is known besides.

    `lists` are by name of a tensor, and so are `integers`, which loops in it return.
    """

    arguments: Sequence[str]
    results: Sequence[Any]
    lists: Mapping[str, ListShape]
    integers: Mapping[str, Value]


def follow_loop(condition: ImportedBody, body: ImportedBody, start: Sequence[Value]) -> list[Value]:
    """Return the integers, and the lengths of lists, that a loop returns; None is what is not known."""
    asked, done = _Tracing("condition", condition), _Tracing("body", body)
    joined = asked.trace(_list_joined(condition.results[0]))
    returned = done.trace(body.results)
    variables = [_name_variable(i) for i in range(len(start))]
    rounds = Rounds(
        [*asked.steps, *done.steps],
        {**asked.known, **done.known},
        dict(zip(variables, start, strict=True)),
        dict(zip(variables, returned, strict=True)),
    )
    counted = rounds.count_rounds(joined)
    if counted is None or not counted[1]:
        return [None] * len(start)
    found = rounds.find_values(counted[0])
    return [found[variable] for variable in variables]


def read_values(tensors: Sequence[Any], body: ImportedBody) -> list[Value]:
    """Return the integers that tensors of a function are, and the lengths of those that are lists."""
    tracing = _Tracing("", body)
    named = tracing.trace(tensors)
    values = Rounds(tracing.steps, tracing.known, {}, {}).run_once()
    return [values[name] for name in named]


class _Tracing:
    """What tensors of a function are computed from: `steps` in order, and what is `known` without them."""

    def __init__(self, function: str, body: ImportedBody) -> None:
        self.steps: list[IntegerStep[Ref]] = []
        self.known: dict[Ref, Value] = {}
        self._function = function
        self._body = body
        self._tensors: dict[Ref, Any] = {}
        self._variable = {name: _name_variable(i) for i, name in enumerate(body.arguments)} if function else {}

    def trace(self, targets: Sequence[Any]) -> list[Ref]:
        """Find what tensors are computed from; return how they are called."""
        named = [self._name_tensor(tensor) for tensor in targets]
        self.steps += order_steps(named, self._find_step, self._meet_leaf)
        return named

    def _name_tensor(self, tensor: Any) -> Ref:
        ref = self._function, tensor.name
        self._tensors[ref] = tensor
        return ref

    def _find_step(self, ref: Ref) -> IntegerStep[Ref] | None:
        tensor = self._tensors.get(ref)
        if tensor is None:  # a variable of the loop
            return None
        if tensor.name in self._variable:
            return IntegerStep(ref, INTEGER_OPS["Identity"], [self._variable[tensor.name]], {})
        op, is_whole = tensor.op, tensor.dtype.as_datatype_enum in WHOLE
        if op.type not in INTEGER_OPS or not is_whole or tensor.name in self._body.integers:
            return None
        inputs = [self._name_tensor(one) for one in op.inputs]
        return IntegerStep(ref, INTEGER_OPS[op.type], inputs, attrs_from_message(op.node_def.attr), tensor.value_index)

    def _meet_leaf(self, ref: Ref) -> Sequence[Ref]:
        if ref in self._tensors:
            self.known[ref] = self._read_leaf(self._tensors[ref])
        return ()

    def _read_leaf(self, tensor: Any) -> Value:
        if tensor.name in self._body.integers:
            return self._body.integers[tensor.name]
        if tensor.name in self._body.lists:
            return self._body.lists[tensor.name].count
        if tensor.dtype.as_datatype_enum not in WHOLE:
            return None
        value = tensor_util.try_evaluate_constant(tensor)
        if value is None or value.ndim > 1 or value.size > _LARGEST:
            return None
        return int(value) if value.ndim == 0 else tuple(map(int, value))


def _name_variable(i: int) -> Ref:
    return "", str(i)


def _list_joined(condition: Any) -> list[Any]:
    """List the tensors that all have to be true for another round."""
    found: list[Any] = []
    waiting = [condition]
    for tensor in waiting:  # grows meanwhile
        if tensor.op.type in ("LogicalAnd", "Identity"):
            waiting += tensor.op.inputs
        else:
            found.append(tensor)
    return found
