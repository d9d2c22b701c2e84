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

_LEAST_RANK = {ops.EagerTensor: 1, np.ndarray: 2}


def split_tensors(op: str, args: Sequence[Any]) -> list[Any] | None:
    """Return an op's arguments with the slices of each tensor that is to be a list; None where there is none."""
    split = {i: list(args[i]) for i in _find_lists(op) if i < len(args) and _has_slices(args[i])}
    return [split.get(i, arg) for i, arg in enumerate(args)] if split else None


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


def _has_slices(value: Any) -> bool:
    """Return whether a value is a tensor whose slices are, too: those of a scalar, and numpy's numbers, are not."""
    rank = _LEAST_RANK.get(type(value))
    return rank is not None and len(value.shape) >= rank
