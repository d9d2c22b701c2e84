"""Tensors of the program: where they are, what they are, and values that stand for others."""

from __future__ import annotations

import re
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import context
from tensorflow.python.framework import constant_op, dtypes, ops
from tensorflow.python.ops import gen_list_ops, gen_optional_ops, gen_resource_variable_ops

from simplace.oracle.child.functions import make_zeros

_RESOURCE_DEVICE = re.compile('device="([^"]+)"')


def find_host() -> str:
    """Give the full name of the CPU that holds what is on no other device."""
    return str(context.context()._context_devices[0]) if context.context()._context_devices else "/device:CPU:0"


def to_device(tensor: Any, device: str) -> Any:
    """Copy a tensor of numbers to `device`; leave it alone if it is there or can't be copied."""
    if not device or tensor.device == device or tensor.dtype in (dtypes.string, dtypes.variant, dtypes.resource):
        return tensor
    return tensor._copy_to_device(device)


def is_gpu_variable(tensor: Any) -> bool:
    """Say whether an input is the handle of a variable on a GPU."""
    return is_variable(tensor) and "/device:GPU:" in resource_device(tensor)


def resource_device(handle: Any) -> str:
    """Name the device that a resource is on, as its handle says.

    That counts where a function takes it (GetDeviceForInput of eager/execute.cc), and not the handle's own device: what
    a function call returns has the device of the call. A handle of another task cannot be read from here.
    """
    is_here = task_of(handle.device) == task_of(find_host()) and "/device:GPU:" not in handle.backing_device
    found = _RESOURCE_DEVICE.search(handle._summarize_value()) if is_here else None
    return found[1] if found else str(handle.device)


def is_variable(tensor: Any) -> bool:
    """Say whether an input is the handle of a variable: other resources have no shape and type."""
    if getattr(tensor, "dtype", None) != dtypes.resource:
        return False
    data = getattr(tensor, "_handle_data", None)
    return data is not None and data.is_set and len(data.shape_and_type) == 1


def is_object(tensor: Any) -> bool:
    """Return whether a tensor is a handle, or holds objects instead of numbers or strings."""
    return getattr(tensor, "dtype", None) in (dtypes.resource, dtypes.variant)


def is_initialized(handle: Any) -> bool:
    """Say whether a variable has a value."""
    return bool(gen_resource_variable_ops.var_is_initialized_op(handle))


def read_variable(handle: Any) -> Any:
    """Read a variable where it is: the result shares its buffer."""
    return gen_resource_variable_ops.read_variable_op(handle, handle._handle_data.shape_and_type[0].dtype)


def zeros_on(device: str, dtype: Any, shape: Any) -> Any:
    """Make zeros on a device, "" for the host."""
    return to_device(ops.EagerTensor(make_zeros(dtype, shape), find_host(), dtype.as_datatype_enum), device)


def make_placeholder(device: str, dtype: Any, shape: Any) -> Any:
    """Make a value that stands for one that was not computed."""
    return make_empty_list() if dtype == dtypes.variant else zeros_on(device, dtype, shape)


def make_full_optional(element: Any) -> Any:
    """Make the variant of an Optional that holds zeros."""
    flat = tf.nest.flatten(element, expand_composites=True)
    with ops.device(find_host()):
        return gen_optional_ops.optional_from_value([zeros_on("", spec.dtype, spec.shape) for spec in flat])


def make_empty_list() -> Any:
    """Make an empty TensorList, the only other variant that can stand for any."""
    with ops.device(find_host()):
        return gen_list_ops.empty_tensor_list(
            element_shape=constant_op.constant([], dtypes.int32), max_num_elements=-1, element_dtype=dtypes.float32
        )


def task_of(device: str) -> str:
    """Take the job, replica and task of a full device name.

    >>> task_of("/job:worker/replica:0/task:1/device:GPU:0")
    '/job:worker/replica:0/task:1'
    """
    return device.partition("/device:")[0]
