"""Tensors of the program: their device, their kind, and placeholder values for those that are not computed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from simplace.graph.constant_numbers import Numbers
from simplace.oracle.child.shared_memory import share_memory
from simplace.oracle.child.tf_private import context, ops

_RESOURCE_DEVICE = re.compile('device="([^"]+)"')
_RESOURCE_NAME = re.compile('name="([^"]*)"')
_DATASET = "::Dataset>"  # how the summary of a variant ends that holds one
_IMMOVABLE = {each.as_datatype_enum for each in (tf.string, tf.variant, tf.resource)}
_ON_GPU = "_simplace_on_gpu"  # an attribute of handles of variables: where they are never changes
_INTEGERS = (tf.int32, tf.int64, tf.bool)
_MOST_READ = 16  # elements of a vector
MADE_AT = "_simplace_made_at"  # an attribute of handles: the line that made the resource


def find_host() -> str:
    """Return the full name of the CPU that holds what is on no other device."""
    return str(context.context()._context_devices[0]) if context.context()._context_devices else "/device:CPU:0"


def to_device(tensor: Any, device: str) -> Any:
    """Move a tensor of numbers to `device`; return it unchanged if it is there or can't be copied."""
    if not device or tensor.device == device or tensor._datatype_enum() in _IMMOVABLE:
        return tensor
    shared = share_memory(tensor, device)
    return tensor._copy_to_device(device) if shared is None else shared


def read_integers(tensor: Any) -> Numbers | None:
    """Return the integers, or bools, of a scalar or a short vector; None for others, and where that needed a copy."""
    if getattr(tensor, "dtype", None) not in _INTEGERS or not _is_short(tensor.shape):
        return None
    if tensor.is_packed or context.context().is_custom_device(tensor.device):
        return None
    where = tensor.backing_device
    near = tensor if where == find_host() else share_memory(tensor, find_host())  # of an emulated GPU: the same memory
    if near is None:
        return None
    value = near.numpy()
    return int(value) if value.ndim == 0 else tuple(map(int, value))


def _is_short(shape: Any) -> bool:
    return shape.rank is not None and shape.rank < 2 and int(shape.num_elements()) <= _MOST_READ


def describe_variable(tensor: Any) -> Any:
    """Return the type and shape of a variable as a `tf.TensorSpec`, from its handle; None for any other tensor."""
    return read_handle_data(getattr(tensor, "_handle_data", None))


def make_empty_variable(like: Any) -> Any:
    """Return the handle of a new variable of the type and shape of another, without a value."""
    spec = describe_variable(like)
    return tf.raw_ops.VarHandleOp(dtype=spec.dtype, shape=spec.shape, shared_name=context.anonymous_name())


def is_gpu_variable(tensor: Any) -> bool:
    """Return whether an input is the handle of a variable on a GPU."""
    known = getattr(tensor, _ON_GPU, None)
    if known is None and is_variable(tensor):
        known = vars(tensor)[_ON_GPU] = "/device:GPU:" in resource_device(tensor)
    return bool(known)


def resource_device(handle: Any) -> str:
    """Return the device that a resource is on, as its handle records it.

    That counts where a function takes it (GetDeviceForInput of eager/execute.cc), and not the handle's own device: what
    a function call returns has the device of the call. A handle of another task cannot be read from here.
    """
    found = _RESOURCE_DEVICE.search(handle._summarize_value()) if _is_readable(handle) else None
    return found[1] if found else str(handle.device)


def input_device(tensor: Any, target: str) -> str:
    """Return the device of an input as the task of the call's device `target` sees it.

    What the program's own task sends to another one is copied to its CPU (EagerRemoteExecute, eager/execute.cc).
    """
    is_resource = getattr(tensor, "dtype", None) == tf.resource
    where = (resource_device(tensor) if is_resource else getattr(tensor, "device", "")) or find_host()
    if not is_resource and "/device:GPU:" in where and "/device:CPU:" in tensor.backing_device:
        where = f"{task_of(where)}/device:CPU:0"  # an op on a GPU may leave a result in host memory, such as a dataset
    home = task_of(target)
    if task_of(where) != home and task_of(where) != task_of(find_host()):
        return where
    is_copied = task_of(where) != home and not is_resource
    if is_copied or getattr(tensor, "dtype", None) in (tf.int32, tf.string):
        return f"{home}/device:CPU:0"
    return where


def describe_resources(inputs: Sequence[Any]) -> list[list[Any]]:
    """List the resources among the inputs of a call: a number and the fields of `simplace.program.program.Resource`."""
    return [
        [
            number,
            name_resource(tensor),
            resource_device(tensor),
            getattr(tensor, MADE_AT, ""),
            is_variable(tensor),
            *_describe_value(tensor),
        ]
        for number, tensor in enumerate(inputs)
        if getattr(tensor, "dtype", None) == tf.resource
    ]


def _describe_value(handle: Any) -> tuple[int | None, list[int] | None]:
    """Return the type and shape of a variable's value, None for what is none or of unknown rank; -1: any size."""
    if not is_variable(handle):
        return None, None
    spec = describe_variable(handle)
    dims = None if spec.shape.rank is None else [-1 if size is None else size for size in spec.shape.as_list()]
    return spec.dtype.as_datatype_enum, dims


def list_datasets(inputs: Sequence[Any]) -> list[int]:
    """List the numbers of the inputs of a call that are datasets."""
    return [
        number
        for number, tensor in enumerate(inputs)
        if getattr(tensor, "dtype", None) == tf.variant
        and _is_readable(tensor)
        and tensor._summarize_value().endswith(_DATASET)
    ]


def name_resource(handle: Any) -> str:
    """Return the name of a resource, which no other one on its device has; "" where it cannot be read from here."""
    found = _RESOURCE_NAME.search(handle._summarize_value()) if _is_readable(handle) else None
    return found[1] if found else ""


def _is_readable(handle: Any) -> bool:
    is_elsewhere = handle.is_packed or "/device:GPU:" in handle.backing_device
    return not is_elsewhere and task_of(handle.device) == task_of(find_host())


def is_variable(tensor: Any) -> bool:
    """Return whether an input is the handle of a variable: other resources have no shape and type."""
    if getattr(tensor, "dtype", None) != tf.resource:
        return False
    return describe_variable(tensor) is not None


def read_handle_data(data: Any) -> Any:
    """Return the type and shape of a variable as a `tf.TensorSpec` from its handle's data, None for other resources."""
    if data is None or not data.is_set or len(data.shape_and_type) != 1:
        return None
    (described,) = data.shape_and_type
    return tf.TensorSpec(tf.TensorShape(described.shape), tf.as_dtype(described.dtype))


def is_object(tensor: Any) -> bool:
    """Return whether a tensor is a handle, or holds objects instead of numbers or strings."""
    return getattr(tensor, "dtype", None) in (tf.resource, tf.variant)


def is_initialized(handle: Any) -> bool:
    """Return whether a variable has a value."""
    return bool(tf.raw_ops.VarIsInitializedOp(resource=handle))


def make_zeros(dtype: Any, shape: Any) -> Any:
    """Return zeros of `dtype` and `shape`, with 1 for each unknown dimension and rank 0 for an unknown rank."""
    dims = [1 if size is None else size for size in shape.as_list()] if shape.rank is not None else []
    if dtype.name == "string":
        return np.full(dims, b"", dtype=object)
    return np.zeros(dims, dtype.as_numpy_dtype)


def zeros_on(device: str, dtype: Any, shape: Any) -> Any:
    """Return zeros on a device, "" for the host."""
    return to_device(ops.EagerTensor(make_zeros(dtype, shape), find_host(), dtype.as_datatype_enum), device)


def make_placeholder(device: str, dtype: Any, shape: Any) -> Any:
    """Return a placeholder value for one that was not computed."""
    return make_empty_list() if dtype == tf.variant else zeros_on(device, dtype, shape)


def make_full_optional(element: Any) -> Any:
    """Return the variant of an Optional that holds zeros."""
    flat = tf.nest.flatten(element, expand_composites=True)
    with tf.device(find_host()):
        return tf.raw_ops.OptionalFromValue(components=[zeros_on("", spec.dtype, spec.shape) for spec in flat])


def is_on_custom_device(scope: str, inputs: Iterable[Any]) -> bool:
    """Return whether TensorFlow runs an op on a custom device: a scope requests one, or an input is on one.

    Mirrors CustomDeviceOpHandler::Execute of eager/custom_device_op_handler.cc, and TFE_Py_Execute.
    """
    is_custom = context.context().is_custom_device
    return any(is_custom(each) for each in {scope, *(tensor.device for tensor in inputs)} if each)


def make_empty_list(device: str = "") -> Any:
    """Return an empty TensorList on a device (by default the host), the placeholder value for any other variant."""
    with tf.device(device or find_host()):
        return tf.raw_ops.EmptyTensorList(
            element_shape=tf.constant([], tf.int32), max_num_elements=-1, element_dtype=tf.float32
        )


def task_of(device: str) -> str:
    """Return the job, replica and task of a full device name.

    >>> task_of("/job:worker/replica:0/task:1/device:GPU:0")
    '/job:worker/replica:0/task:1'
    """
    return device.partition("/device:")[0]
