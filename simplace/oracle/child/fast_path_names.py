"""What TensorFlow's fast path adds to the text of an error, which its slow path leaves out: the name given to the op.

Mirrors raise_from_not_ok_status in tensorflow/python/framework/ops.py, and of tensorflow/python/eager/
pywrap_tfe_src.cc CheckInputsOk, which says what is left to the slow path.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from simplace.oracle.child import kernel_types
from simplace.oracle.child.tf_private import core, ops, resource_variable_ops

_Types = tuple[type, ...]  # of an argument, then of its elements where it is a list
_FAST = (np.ndarray, float, int, resource_variable_ops.ResourceVariable)  # and tensors, of exactly one type


class FastPathNames(threading.local):
    """The names that were given to ops, in each thread, which simplace sends by the slow path."""

    def __init__(self) -> None:
        self._given: dict[str, tuple[Any, list[_Types]]] = {}

    def note(self, op: str, name: Any, args: Sequence[Any]) -> None:
        """Remember the name given to an op, None for none, and the types of its arguments."""
        self._given[op] = name, [(type(each), *map(type, each if type(each) in (list, tuple) else ())) for each in args]

    def complete(self, op: str, error: Any) -> None:
        """Write the name into the error of an op that would have taken the fast path."""
        name, types = self._given.pop(op, (None, None))
        if types is None or not _is_fast(op, types):
            return
        if not isinstance(error, core._NotOkStatusException):
            error._message += f" name: {'' if name is None else name}"
        elif name is None:  # the slow path writes any other one
            error.message += " name: "


def _is_fast(op: str, types: Sequence[_Types]) -> bool:
    inputs = zip(kernel_types.find_op_def(op).input_arg, types, strict=False)
    checked = (each[1:] if arg.number_attr or arg.type_list_attr else each[:1] for arg, each in inputs)
    return all(each is ops.EagerTensor or issubclass(each, _FAST) for of_arg in checked for each in of_arg)
