"""The integers that a loop of functions returns, as far as they are known: its counters, and how long its lists are.

TensorFlow's shape inference does not run loops, so an array that grows in one has no length there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simplace.graph.graph_def import attrs_from_message
from simplace.graph.integer_ops import INTEGER_OPS, WHOLE, Value
from simplace.graph.integer_rounds import IntegerStep, Rounds
from simplace.oracle.child.list_shapes import ListShape
from simplace.oracle.child.tf_private import tensor_util

_POP = "TensorListPopBack"
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
    asked = _Tracing("condition", condition)
    joined = [asked.name_tensor(tensor) for tensor in _list_joined(condition.results[0])]
    asked.trace(_list_joined(condition.results[0]))
    done = _Tracing("body", body)
    done.trace(body.results)
    variables = [_name_variable(i) for i in range(len(start))]
    rounds = Rounds(
        [*asked.steps, *done.steps],
        {**asked.known, **done.known},
        dict(zip(variables, start, strict=True)),
        dict(zip(variables, map(done.name_tensor, body.results), strict=True)),
    )
    counted = rounds.count_rounds(joined)
    if counted is None or not counted[1]:
        return [None] * len(start)
    found = rounds.find_values(counted[0])
    return [found[variable] for variable in variables]


def read_values(tensors: Sequence[Any], body: ImportedBody) -> list[Value]:
    """Return the integers that tensors of a function are, and the lengths of those that are lists."""
    tracing = _Tracing("", body)
    tracing.trace(tensors)
    values = next(Rounds(tracing.steps, tracing.known, {}, {}).run())
    return [values[tracing.name_tensor(tensor)] for tensor in tensors]


class _Tracing:
    """What tensors of a function are computed from: `steps` in order, and what is `known` without them."""

    def __init__(self, function: str, body: ImportedBody) -> None:
        self.steps: list[IntegerStep[Ref]] = []
        self.known: dict[Ref, Value] = {}
        self._function = function
        self._body = body
        self._variable = {name: _name_variable(i) for i, name in enumerate(body.arguments)} if function else {}

    def name_tensor(self, tensor: Any) -> Ref:
        return self._function, tensor.name

    def trace(self, targets: Sequence[Any]) -> None:
        waiting: list[Any] = [*targets]
        seen: set[str] = set()
        while waiting:
            one = waiting.pop()
            if isinstance(one, IntegerStep):
                self.steps.append(one)
                continue
            if one.name in seen:
                continue
            seen.add(one.name)
            made, op = self.name_tensor(one), one.op
            if one.name in self._variable:
                self.steps.append(IntegerStep(made, INTEGER_OPS["Identity"], [self._variable[one.name]], {}))
            elif _is_computed(one) and one.name not in self._body.integers:
                inputs = [self.name_tensor(tensor) for tensor in op.inputs]
                attrs = attrs_from_message(op.node_def.attr)
                waiting += [IntegerStep(made, INTEGER_OPS[op.type], inputs, attrs, one.value_index), *op.inputs]
            else:
                self.known[made] = self._read_leaf(one)

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


def _is_computed(tensor: Any) -> bool:
    is_element = tensor.op.type == _POP and tensor.value_index == 1
    return tensor.op.type in INTEGER_OPS and tensor.dtype.as_datatype_enum in WHOLE and not is_element


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
