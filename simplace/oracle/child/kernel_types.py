"""The device types that have a kernel for an eager op, from the installed registry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import tensorflow as tf

from simplace.oracle.child.tf_private import kernels, op_def_registry

# These create, read, write, copy or queue tensors, or hold a lock: their GPU kernels need no GPU. plugin.c runs them.
_HARMLESS = frozenset({
    "AssignVariableOp", "Const", "ConsumeMutexLock", "DestroyResourceOp", "FIFOQueueV2", "Identity", "IdentityN",
    "MutexLock", "MutexV2", "NoOp", "QueueCloseV2", "QueueDequeueV2", "QueueEnqueueV2", "QueueIsClosedV2",
    "QueueSizeV2", "ReadVariableOp", "Reshape", "StopGradient", "VarHandleOp", "VarIsInitializedOp", "_Arg",
    "_DeviceArg", "_DeviceRetval", "_EagerConst", "_Retval",
})  # fmt: skip
_REWRITTEN = frozenset({"AccumulateNV2", "ParallelConcat"})  # before they are placed, by their shape
TYPE_ATTRS = ("output_types", "Toutput_types")  # by which an op names the types of a dataset's elements
_TYPE_KINDS = ("type", "list(type)")
_ALL_KINDS = (*_TYPE_KINDS, "shape")
_XLA = "XLA_CPU_JIT"
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
def calls_functions(op: str) -> bool:
    """Return whether `op` names functions by its attributes."""
    definition = find_op_def(op)
    return definition is not None and any(attr.type in ("func", "list(func)") for attr in definition.attr)


@cache
def makes_dataset(op: str) -> bool:
    """Return whether `op` makes a dataset."""
    definition = find_op_def(op)
    is_of_datasets = definition is not None and "Dataset" in op
    return is_of_datasets and [arg.type for arg in definition.output_arg] == [tf.variant.as_datatype_enum]


@cache
def takes_seeds(op: str) -> bool:
    """Return whether `op` makes a dataset whose iterators take seeds of one generator."""
    definition = find_op_def(op)
    return definition is not None and any(arg.name == "seed_generator" for arg in definition.input_arg)


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
    return makes or takes or calls_functions(op)


@cache
def placing_attrs(op: str) -> tuple[tuple[str, str], ...]:
    """List the attributes of an op, with their kinds, that decide the types of its arguments, or which kernel runs."""
    definition = find_op_def(op)
    if definition is None:
        return ()
    counts = {arg.number_attr for arg in (*definition.input_arg, *definition.output_arg)}
    constrained = {
        each.name for kernel in kernels.get_registered_kernels_for_op(op).kernel for each in kernel.constraint
    }
    kinds = _ALL_KINDS if op in _REWRITTEN else _TYPE_KINDS
    return tuple(
        (attr.name, attr.type)
        for attr in definition.attr
        if attr.type in kinds or attr.name in counts or attr.name in constrained
    )


@cache
def inferred_attrs(op: str) -> tuple[tuple[str, int], ...]:
    """List the type attributes that TensorFlow takes from an input, whatever was given, with the input's number.

    So does MaybeInferSingleInputAttrs of common_runtime/eager/eager_operation.cc, up to an input that is a list.
    """
    found: dict[str, int] = {}
    for i, arg in enumerate(find_op_def(op).input_arg):
        if arg.number_attr or arg.type_list_attr:
            break
        if arg.type_attr:
            found.setdefault(arg.type_attr, i)
    return tuple(found.items())


@cache
def keeps_ints_on_host(op: str, device_type: str) -> bool:
    """Return whether the int32 results of an eager op stay in host memory.

    So does GetOrCreateKernelAndDevice of common_runtime/eager/execute.cc.
    """
    outputs = {arg.name for arg in find_op_def(op).output_arg}
    found = kernels.get_registered_kernels_for_op(op).kernel
    of_type = [kernel for kernel in found if kernel.device_type in (device_type, "DEFAULT")]
    return any(not outputs.isdisjoint(kernel.host_memory_arg) for kernel in of_type)


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


def has_xla_kernel(node: Any) -> bool:
    """Return whether XLA has a kernel for a node of a FunctionDef, on the CPU; also for calls, which it looks into."""
    if find_op_def(node.op) is None:
        return True
    given = {name: (value.type,) if value.HasField("type") else value.list.type for name, value in node.attr.items()}
    return any(all(_allows_types(each, given) for each in kernel.constraint) for kernel in _list_xla_kernels(node.op))


@cache
def _list_xla_kernels(op: str) -> tuple[Any, ...]:
    return tuple(each for each in kernels.get_registered_kernels_for_op(op).kernel if each.device_type == _XLA)


def _allows_types(constraint: Any, given: Mapping[str, Sequence[int]]) -> bool:
    allowed = constraint.allowed_values.list.type
    return not allowed or all(number in allowed for number in given.get(constraint.name, ()))


def _list_types(value: Any) -> tuple[int, ...]:
    values = value if isinstance(value, (list, tuple)) else (value,)
    numbers = (getattr(each, "_type_enum", each) for each in values)
    return tuple(number for number in numbers if type(number) is int)
