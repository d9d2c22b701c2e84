"""Eager ops whose like has run before: what TensorFlow's slow path made of the first one is right for them, too.

The slow path converts an op's arguments, and infers its types from them. For tensors that are alike, with the same
attributes, it does so with the same outcome.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from simplace.oracle.child import kernel_types
from simplace.oracle.child.eager_log import EagerKind, EagerLog
from simplace.oracle.child.tf_private import ops

_LISTS = ("number_attr", "type_list_attr")
_FUNCTIONS = ("func", "list(func)")
_Key = tuple[Hashable, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """Record of what ops that are alike have in common: their kind, all their attributes, how many outputs."""

    kind: EagerKind
    attrs: Sequence[Any]
    outputs: int


class EagerRepeats:
    """The ops that ran, by what their callers pass to TensorFlow's fast path."""

    def __init__(self, log: EagerLog) -> None:
        self._log = log
        self._known: dict[_Key, Repeat] = {}
        self._asked = threading.local()  # of each thread, the op that it is about to run by the slow path

    def find(self, ctx: Any, op: str, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Repeat | None:
        """Return what an op has in common with one that ran; None if it is to take the slow path."""
        self._asked.key = None
        if ctx.op_callbacks or any(type(each) is not ops.EagerTensor for each in inputs):
            return None
        try:
            key = (op, *map(_freeze, attrs), *self._log.describe_op(ctx.device_name or "", inputs))
            found = self._known.get(key)
        except TypeError:  # an attribute that is no key
            return None
        if found is None:
            self._asked.key, self._asked.inputs = key, tuple(map(id, inputs))
        return found

    def note(self, op: str, inputs: Sequence[Any], repeat: Repeat) -> None:
        """Note an op that came by the slow path and ran, if this thread was asked for it just before."""
        key, self._asked.key = getattr(self._asked, "key", None), None
        if key is not None and key[0] == op and self._asked.inputs == tuple(map(id, inputs)):
            self._known[key] = repeat


@cache
def count_inputs(op: str) -> int | None:
    """Return how many inputs an op has; None for one with lists of inputs or outputs, or that calls functions."""
    definition = kernel_types.find_op_def(op)
    if definition is None or any(attr.type in _FUNCTIONS for attr in definition.attr):
        return None
    if any(getattr(arg, kind) for arg in (*definition.input_arg, *definition.output_arg) for kind in _LISTS):
        return None
    return len(definition.input_arg)


def _freeze(value: Any) -> Any:
    return tuple(value) if type(value) is list else value
