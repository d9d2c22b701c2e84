"""The device types that have a kernel for an eager op, from the installed registry."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import tensorflow as tf

from simplace.oracle.child.tf_private import kernels, op_def_registry

# These create, read, write or copy tensors: their GPU kernels need no GPU, and plugin.c runs them.
_HARMLESS = frozenset({
    "AssignVariableOp", "Const", "DestroyResourceOp", "Identity", "IdentityN", "NoOp", "ReadVariableOp", "Reshape",
    "StopGradient", "VarHandleOp", "VarIsInitializedOp", "_Arg", "_DeviceArg", "_DeviceRetval", "_EagerConst",
    "_Retval",
})  # fmt: skip
_HOST_TYPES = {tf.resource.as_datatype_enum, tf.variant.as_datatype_enum}


@cache
def find_op_def(op: str) -> Any:
    """Return the OpDef of `op`, None if it is not an op."""
    return op_def_registry.get(op)


def is_harmless(op: str) -> bool:
    """Return whether a GPU kernel of `op` computes nothing, so that it also runs on a GPU that is not there."""
    return op in _HARMLESS


@cache
def has_dataset_functions(op: str) -> bool:
    """Return whether `op` calls functions as the kernels of datasets do."""
    definition = find_op_def(op)
    return definition is not None and "Dataset" in op and any(attr.type == "func" for attr in definition.attr)


@cache
def handles_objects(op: str) -> bool:
    """Return whether `op` works on more than numbers: it takes or makes a variant, makes a resource, or calls.

    Datasets, iterators and tables are of this kind: their kernels run on the host whatever their device.
    """
    definition = find_op_def(op)
    if definition is None:
        return False
    if op.startswith("TensorList"):  # a variant, but a list of tensors: its kernels compute
        return False
    makes = any(arg.type in _HOST_TYPES for arg in definition.output_arg)
    takes = any(arg.type == tf.variant.as_datatype_enum for arg in definition.input_arg)
    return makes or takes or any(attr.type in ("func", "list(func)") for attr in definition.attr)


def device_types(op: str, attrs: Mapping[str, Any]) -> frozenset[str]:
    """List the device types, of CPU and GPU, with a kernel for `op` under type attributes given by their numbers."""
    return _device_types(op, tuple(sorted((name, _list_types(value)) for name, value in attrs.items())))


@cache
def _device_types(op: str, attrs: tuple[tuple[str, tuple[int, ...]], ...]) -> frozenset[str]:
    given = dict(attrs)
    found: set[str] = set()
    for kernel in kernels.get_registered_kernels_for_op(op).kernel:
        if kernel.label or not all(_allows_types(constraint, given) for constraint in kernel.constraint):
            continue
        found |= {"CPU", "GPU"} if kernel.device_type == "DEFAULT" else {kernel.device_type}
    return frozenset(found & {"CPU", "GPU"})


def _allows_types(constraint: Any, given: Mapping[str, tuple[int, ...]]) -> bool:
    allowed = constraint.allowed_values.list.type
    return not allowed or all(number in allowed for number in given.get(constraint.name, ()))


def _list_types(value: Any) -> tuple[int, ...]:
    values = value if isinstance(value, (list, tuple)) else (value,)
    numbers = (getattr(each, "_type_enum", each) for each in values)
    return tuple(number for number in numbers if type(number) is int)
