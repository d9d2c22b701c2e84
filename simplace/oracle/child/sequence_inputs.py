"""Inputs of eager ops that are lists: TensorFlow's fast path takes a tensor for one, its slow path does not.

Mirrors CheckInputsOk of tensorflow/python/eager/pywrap_tfe_src.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import tensorflow as tf

from simplace.oracle.child import kernel_types
from simplace.oracle.child.tf_private import ops


def split_tensors(op: str, args: Sequence[Any]) -> list[Any] | None:
    """Return an op's arguments with the slices of each tensor that is to be a list; None where there is none."""
    found = [_split(arg) if i in _find_lists(op) else arg for i, arg in enumerate(args)]
    return found if any(one is not other for one, other in zip(found, args, strict=True)) else None


def call_raw_op(op: str, name: Any, args: Sequence[Any]) -> Any:
    """Call an op with the arguments of the fast path: its inputs, then the name and the value of each attribute."""
    names = [arg.name for arg in kernel_types.find_op_def(op).input_arg]
    attrs = args[len(names) :]
    given = {**dict(zip(names, args, strict=False)), **dict(zip(attrs[::2], attrs[1::2], strict=True))}
    return getattr(tf.raw_ops, op)(**given, name=name)


@cache
def _find_lists(op: str) -> frozenset[int]:
    definition = kernel_types.find_op_def(op)
    args = () if definition is None else definition.input_arg
    return frozenset(i for i, arg in enumerate(args) if arg.number_attr or arg.type_list_attr)


def _split(value: Any) -> Any:
    """Return the slices of a tensor that are tensors themselves: neither those of a scalar, nor numpy's numbers."""
    rank = {ops.EagerTensor: 1, np.ndarray: 2}.get(type(value))
    return value if rank is None or len(value.shape) < rank else list(value)
