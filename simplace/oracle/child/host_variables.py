"""GPU variables lent to the CPU: copies in host memory for the time of a computation, then written back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tensorflow.python.eager import context, record
from tensorflow.python.framework import ops
from tensorflow.python.ops import gen_resource_variable_ops

from simplace.oracle.child.tensors import is_gpu_variable, is_initialized, read_variable


@contextmanager
def lend_to_host(inputs: Sequence[Any]) -> Iterator[list[Any]]:
    """Yield the inputs with a copy in host memory for each GPU variable; afterwards the variables have its value."""
    copies = {id(tensor): _copy_variable(tensor) for tensor in inputs if is_gpu_variable(tensor)}
    try:
        yield [copies.get(id(tensor), tensor) for tensor in inputs]
        with record.stop_recording():
            for tensor in inputs:
                if id(tensor) in copies and is_initialized(copies[id(tensor)]):
                    gen_resource_variable_ops.assign_variable_op(tensor, read_variable(copies[id(tensor)]))
    finally:
        for copy in copies.values():
            gen_resource_variable_ops.destroy_resource_op(copy, ignore_lookup_error=True)


def _copy_variable(handle: Any) -> Any:
    described = handle._handle_data.shape_and_type[0]
    with record.stop_recording(), ops.device("/device:CPU:0"):
        copy = gen_resource_variable_ops.var_handle_op(
            dtype=described.dtype, shape=described.shape, shared_name=context.anonymous_name()
        )
        copy._handle_data = handle._handle_data
        if is_initialized(handle):
            gen_resource_variable_ops.assign_variable_op(copy, read_variable(handle))
    return copy
