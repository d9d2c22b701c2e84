"""Copies of GPU variables in host memory, for one computation on the CPU, then written back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import tensorflow as tf

from simplace.oracle.child.tensors import is_gpu_variable, is_initialized, make_empty_variable, read_variable
from simplace.oracle.child.tf_private import record


@contextmanager
def lend_to_host(inputs: Sequence[Any]) -> Iterator[list[Any]]:
    """Yield the inputs with a copy in host memory for each GPU variable; afterwards the variables have its value."""
    copies = {id(tensor): _copy_variable(tensor) for tensor in inputs if is_gpu_variable(tensor)}
    try:
        yield [copies.get(id(tensor), tensor) for tensor in inputs]
        with record.stop_recording():
            for tensor in inputs:
                if id(tensor) in copies and is_initialized(copies[id(tensor)]):
                    tf.raw_ops.AssignVariableOp(resource=tensor, value=read_variable(copies[id(tensor)]))
    finally:
        for copy in copies.values():
            tf.raw_ops.DestroyResourceOp(resource=copy, ignore_lookup_error=True)


def _copy_variable(handle: Any) -> Any:
    with record.stop_recording(), tf.device("/device:CPU:0"):
        copy = make_empty_variable(handle)
        copy._handle_data = handle._handle_data
        if is_initialized(handle):
            tf.raw_ops.AssignVariableOp(resource=copy, value=read_variable(handle))
    return copy
