"""Functions of one op: in a function, what no CPU has a kernel for can be replaced by what computes the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from simplace.oracle.child.tf_private import op_def_registry

_Key = tuple[str, str, tuple[Any, ...]]  # an op, its attributes as text, the types of its inputs


class OneOpFunctions:
    """Trace a function for each kind of op, once."""

    def __init__(self) -> None:
        self._traced: dict[_Key, Any] = {}

    def find(self, op: str, attrs: Mapping[str, Any], inputs: Sequence[Any]) -> Any:
        """Return the concrete function that runs an op with these attributes on such inputs, of any shape."""
        key = op, repr(sorted(attrs.items())), tuple(tensor.dtype for tensor in inputs)
        if key not in self._traced:
            self._traced[key] = _trace(op, attrs, inputs)
        return self._traced[key]


def _trace(op: str, attrs: Mapping[str, Any], inputs: Sequence[Any]) -> Any:
    definition = op_def_registry.get(op)
    assert definition is not None, "asked only for ops that are there"
    inferred = {name for arg in definition.input_arg for name in (arg.type_attr, arg.type_list_attr, arg.number_attr)}
    chosen = {attr.name: attrs[attr.name] for attr in definition.attr if attr.name in attrs.keys() - inferred}

    def call(*flat: Any) -> Any:
        left = iter(flat)
        given = {arg.name: _take_argument(arg, attrs, left) for arg in definition.input_arg}
        return getattr(tf.raw_ops, op)(**given, **chosen)

    with tf.init_scope(), tf.device(None):
        specs = [tf.TensorSpec(None, tensor.dtype) for tensor in inputs]
        return tf.function(call, autograph=False).get_concrete_function(*specs)


def _take_argument(arg: Any, attrs: Mapping[str, Any], flat: Any) -> Any:
    """Return the next of `flat` for an argument: one tensor, or a list whose length an attribute gives."""
    if arg.number_attr:
        return [next(flat) for _ in range(attrs[arg.number_attr])]
    return [next(flat) for _ in attrs[arg.type_list_attr]] if arg.type_list_attr else next(flat)
