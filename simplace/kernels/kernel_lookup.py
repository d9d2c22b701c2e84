"""Find the kernel that TensorFlow would use for a node on a device type.

Mirrors tensorflow/core/framework/op_kernel.cc (`FindKernelRegistration`, `SupportedDeviceTypesForNode`),
kernel_def_util.cc (`KernelAttrsMatch`) and memory_types.cc (`MemoryTypesForNode`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from simplace.devices.device_name import DeviceName
from simplace.errors import SimplaceError
from simplace.graph import dtypes
from simplace.graph.dtypes import DataType
from simplace.graph.node_def import AttrValue
from simplace.graph.op_kinds import MUST_COMPILE, PARTITIONED_CALLS, SYMBOLIC_GRADIENT, WHILES
from simplace.kernels.registry import AttrError, Kernel, KernelTable, argument_ranges, argument_types, with_defaults

DEFAULT = "DEFAULT"
SYMBOLIC = "_JIT"  # how the device types end that XLA compiles for; no device has one
LABEL = "_kernel"
HOST_HINTS = ("_input_hostmem", "_output_hostmem")
_CALLS = PARTITIONED_CALLS | WHILES | {SYMBOLIC_GRADIENT}


class KernelSearchError(SimplaceError):
    """Report registrations that TensorFlow refuses to choose between."""


@dataclass(frozen=True, slots=True)
class Found:
    """Record of a search: `was_attr_mismatch` says that a registration existed but did not match the attributes."""

    kernel: Kernel | None
    was_attr_mismatch: bool = False


@dataclass(frozen=True, slots=True)
class NearestDtype:
    """Propose to change the attribute `attr` from `dtype` to `instead`, for which a kernel exists."""

    attr: str
    dtype: DataType
    instead: DataType


def find_kernel(table: KernelTable, op: str, device_type: str, attrs: Mapping[str, AttrValue]) -> Kernel | None:
    """Return the kernel that runs a node on a device type, None where there is none.

    `attrs` are the node's, with or without defaults. Raise `KernelSearchError` where two registrations of the same
    priority match, `AttrError` where a constraint names an attribute that the node lacks.
    """
    return search_kernels(table, op, device_type, attrs).kernel


def search_kernels(table: KernelTable, op: str, device_type: str, attrs: Mapping[str, AttrValue]) -> Found:
    """Search as `find_kernel` does, and return whether only the attributes did not match."""
    op_def = table.op(op)
    filled = attrs if op_def is None else with_defaults(op_def, attrs)
    label = _kernel_label(filled)
    own, mismatch = _find_best_match(table.registrations(op, device_type, label), filled)
    if own is not None or device_type.endswith(SYMBOLIC):  # these have no default kernels
        return Found(own, mismatch)
    default, default_mismatch = _find_only_match(table.registrations(op, DEFAULT, label), filled)
    return Found(default, mismatch or default_mismatch)


def supported_device_types(
    table: KernelTable,
    op: str,
    attrs: Mapping[str, AttrValue],
    device_types: Sequence[str],
    *,
    requested: DeviceName | None = None,
    local: DeviceName | None = None,
) -> tuple[tuple[str, int], ...]:
    """Return the device types that can run a node with their kernel priorities, highest first, equal ones as given.

    `device_types` are those of the device set, in its order. An op that the table does not know is the name of a
    function: every type can run it. Where the requested device is in a different address space than `local`, an op
    without kernels here is taken to have one there, for the requested type, or for every type if none is requested.
    An empty result means that TensorFlow refuses the node.
    """
    if table.op(op) is None:
        return tuple((device_type, 0) for device_type in device_types)
    found = [(device_type, search_kernels(table, op, device_type, attrs)) for device_type in device_types]
    types = [(device_type, one.kernel.priority) for device_type, one in found if one.kernel is not None]
    is_remote = requested is not None and local is not None and requested.different_address_space(local)
    if not types and is_remote and not any(one.was_attr_mismatch for _, one in found):
        assert requested is not None  # or it would not be remote
        types = [(device_type, 0) for device_type in ([requested.type] if requested.type else device_types)]
    return tuple(sorted(types, key=lambda entry: -entry[1]))


def memory_types(
    table: KernelTable, op: str, device_type: str, attrs: Mapping[str, AttrValue]
) -> tuple[tuple[bool, ...], tuple[bool, ...]]:
    """Return for each input and each output slot of a node whether it is in host memory.

    The op must be one that the table knows. References count as their base type only where TensorFlow's own test
    does: `string_ref` is always on the host, `int32_ref` never by its type.
    """
    op_def = table.op(op)
    assert op_def is not None, f"memory types of an op that {table.name} does not know: {op}"
    filled = with_defaults(op_def, attrs)
    kernel = None if op in _CALLS else _kernel_or_none(table, op, device_type, filled)
    ints_on_device = kernel is not None or device_type == "TPU" or filled.get(MUST_COMPILE) is True
    sides = zip((op_def.inputs, op_def.outputs), argument_types(op_def, filled), strict=True)
    hosts = []
    for (args, types), hint in zip(sides, HOST_HINTS, strict=True):
        named = kernel.host_memory if kernel is not None else frozenset()
        on_host = {
            dtype: _always_on_host(dtype) or (dtype == DataType.DT_INT32 and not ints_on_device) for dtype in set(types)
        }
        host = [on_host[dtype] for dtype in types]
        for name, start, stop in argument_ranges(op_def, args, filled):
            if name in named:
                host[start:stop] = [True] * (stop - start)
        for slot in _read_slots(filled.get(hint)):
            if 0 <= slot < len(host):
                host[slot] = True
        hosts.append(tuple(host))
    return hosts[0], hosts[1]


def computes_on_host(sides: tuple[Sequence[bool], Sequence[bool]]) -> bool:
    """Return whether a kernel has all that it takes and gives in host memory: it computes there, on any device.

    So are those of int32 on GPUs. `sides` is as `memory_types` returns it.
    """
    inputs, outputs = sides
    return bool(inputs or outputs) and all(inputs) and all(outputs)


def nearest_dtype(table: KernelTable, op: str, device_type: str, attrs: Mapping[str, AttrValue]) -> NearestDtype | None:
    """Propose the one change of a type attribute that would give the node a kernel on a device type.

    A wider type of the same class comes first, the closest one; then a narrower one; then another class in the
    order float, int, uint. None where the node has a kernel there already or no single change helps.
    """
    op_def = table.op(op)
    if op_def is None or find_kernel(table, op, device_type, attrs) is not None:
        return None
    filled = with_defaults(op_def, attrs)
    for attr, kind in op_def.attr_types.items():
        dtype = filled.get(attr)
        if kind != "type" or not isinstance(dtype, DataType):
            continue
        for instead in _by_closeness(dtype, op_def.allowed.get(attr)):
            if _kernel_or_none(table, op, device_type, {**filled, attr: instead}) is not None:
                return NearestDtype(attr, dtype, instead)
    return None


class UnknownConstraintError(AttrError):
    """Report a node whose op lacks an attribute that one of its kernels depends on (KernelAttrsMatch)."""


def attrs_match(kernel: Kernel, attrs: Mapping[str, AttrValue]) -> bool:
    """Return whether a node's attributes meet all constraints of a registration.

    >>> on_floats = Kernel("Foo", "GPU", constraints=(("T", frozenset({1, 19})),))
    >>> attrs_match(on_floats, {"T": 1}), attrs_match(on_floats, {"T": (1, 3)}), attrs_match(on_floats, {"T": ()})
    (True, False, True)
    """
    for name, allowed in kernel.constraints:
        if name not in attrs:
            raise UnknownConstraintError(f"OpKernel '{kernel.op}' has constraint on attr '{name}' not in NodeDef")
        value = attrs[name]
        if not (allowed.issuperset(value) if isinstance(value, tuple) else value in allowed):
            return False
    return True


def _kernel_label(attrs: Mapping[str, AttrValue]) -> str:
    value = attrs.get(LABEL)
    return value.decode(errors="replace") if isinstance(value, bytes) else ""


def _find_best_match(kernels: tuple[Kernel, ...], attrs: Mapping[str, AttrValue]) -> tuple[Kernel | None, bool]:
    best: Kernel | None = None
    mismatch = False
    for kernel in kernels:
        if not attrs_match(kernel, attrs):
            mismatch = True
        elif best is None or kernel.priority > best.priority:
            best = kernel
        elif kernel.priority == best.priority:
            raise KernelSearchError(f"Multiple OpKernel registrations match NodeDef at the same priority: {kernel.op}")
    return best, mismatch


def _find_only_match(kernels: tuple[Kernel, ...], attrs: Mapping[str, AttrValue]) -> tuple[Kernel | None, bool]:
    matching = [kernel for kernel in kernels if attrs_match(kernel, attrs)]
    if len(matching) > 1:
        raise KernelSearchError(f"Multiple Default OpKernel registrations match NodeDef: {matching[0].op}")
    return (matching[0] if matching else None), len(matching) < len(kernels)


def _kernel_or_none(table: KernelTable, op: str, device_type: str, attrs: Mapping[str, AttrValue]) -> Kernel | None:
    try:
        return find_kernel(table, op, device_type, attrs)
    except (KernelSearchError, AttrError):
        return None  # memory_types.cc goes on without a kernel where the search fails


def _always_on_host(dtype: int) -> bool:
    return dtype in (DataType.DT_STRING, DataType.DT_STRING + dtypes.REF_OFFSET, DataType.DT_RESOURCE)


def _read_slots(value: AttrValue) -> tuple[int, ...]:
    return tuple(value) if isinstance(value, tuple) else ()


_CLASSES: tuple[tuple[DataType, ...], ...] = (
    (DataType.DT_HALF, DataType.DT_BFLOAT16, DataType.DT_FLOAT, DataType.DT_DOUBLE),
    (DataType.DT_INT8, DataType.DT_INT16, DataType.DT_INT32, DataType.DT_INT64),
    (DataType.DT_UINT8, DataType.DT_UINT16, DataType.DT_UINT32, DataType.DT_UINT64),
    (DataType.DT_COMPLEX64, DataType.DT_COMPLEX128),
)
_COMMON_FIRST = (
    *(DataType.DT_FLOAT, DataType.DT_DOUBLE, DataType.DT_HALF, DataType.DT_BFLOAT16),
    *(DataType.DT_INT32, DataType.DT_INT64, DataType.DT_INT16, DataType.DT_INT8),
    *(DataType.DT_UINT32, DataType.DT_UINT64, DataType.DT_UINT16, DataType.DT_UINT8),
)


def _by_closeness(dtype: DataType, allowed: tuple[AttrValue, ...] | None) -> list[DataType]:
    own = next((types for types in _CLASSES if dtype in types), ())
    place = own.index(dtype) if own else 0
    order = [*own[place + 1 :], *reversed(own[:place])]
    order += [one for one in _COMMON_FIRST if one not in own]
    return [one for one in order if allowed is None or one in allowed]
