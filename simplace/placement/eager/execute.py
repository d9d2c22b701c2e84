"""Where an eager op runs, and where it needs its inputs.

Mirrors EagerOperation::Execute, SetOpDevice, GetOrCreateKernelAndDevice, GetDeviceForInput and
ValidateInputTypeAndPlacement (tensorflow/core/common_runtime/eager/{core,execute}.cc).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from simplace.devices.device_name import DeviceName
from simplace.devices.device_set import DeviceSet
from simplace.graph.dtypes import DataType
from simplace.kernels.kernel_lookup import KernelSearchError, find_kernel, supported_device_types
from simplace.kernels.registry import AttrError, Kernel, KernelTable, argument_ranges, with_defaults
from simplace.placement.default_device import select_device
from simplace.placement.eager.placement_utils import is_pinned_small, pinning_resource
from simplace.placement.kernel_support import Types, registration_text
from simplace.program.eager_op import EagerInput, EagerOp
from simplace.program.status import Refusal, Refused, invalid_argument

_CONSTANT = "_EagerConst"
_HANDLES = frozenset({DataType.DT_STRING, DataType.DT_RESOURCE})  # always in host memory (MTypeFromDTypeIntsOnDevice)


class EagerRule(Enum):
    """Name the rule that decided on the device of an eager op, in the order in which TensorFlow tries them."""

    RESOURCE = "goes where its resource is"
    SMALL_INPUTS = "small integers stay on the CPU"
    REQUESTED = "requested"
    SOFT_FALLBACK = "request dropped"
    BEST_KERNEL = "best kernel"


@dataclass(frozen=True, slots=True)
class EagerChoice:
    """Record of the device chosen for an eager op, of the rule, and of the device types with a kernel, best first.

    `resource` is the input that decided (-1: none).
    """

    device: str
    rule: EagerRule
    types: Types
    resource: int = -1


@dataclass(frozen=True, slots=True)
class InputCopy:
    """Record of an input that is copied before the op can run, by its number."""

    input: int
    source: str
    target: str


def choose_device(op: EagerOp, devices: DeviceSet, table: KernelTable) -> EagerChoice:
    """Return the device of an eager op; raise `Refused` where TensorFlow finds none."""
    types = _kernel_types(op, devices, table)
    resource = pinning_resource(op)
    if resource >= 0:
        return EagerChoice(op.inputs[resource].device, EagerRule.RESOURCE, types, resource)
    if is_pinned_small(op):
        return EagerChoice(devices.host.name, EagerRule.SMALL_INPUTS, types)
    if _is_sent(op, devices) and devices.find(op.scope) is None:
        raise invalid_argument(f"{op.scope} unknown device.")
    if not types:
        raise Refused(Refusal("NOT_FOUND", _no_kernel(op, table)))
    spec = (DeviceName.parse(op.scope) if op.scope else devices.home) or DeviceName()
    device = select_device(spec, types, devices, op.soft_placement)
    if spec.type is None and spec.id is None:
        return EagerChoice(device.name, EagerRule.BEST_KERNEL, types)
    rule = EagerRule.REQUESTED if spec.matches(device.spec) else EagerRule.SOFT_FALLBACK
    return EagerChoice(device.name, rule, types)


def input_devices(op: EagerOp, device: str, devices: DeviceSet, table: KernelTable) -> tuple[str, ...]:
    """Return where an op on a device needs each input, by full device names (GetDeviceForInput)."""
    found = kernel_on(op, device, devices, table)
    wanted = _host_arguments(op, found, table)
    return tuple(_input_device(each, is_host, device, devices) for each, is_host in zip(op.inputs, wanted, strict=True))


def keeps_ints_on_device(op: EagerOp, device: str, devices: DeviceSet, table: KernelTable) -> bool:
    """Return whether int32 arguments and results of an op are in its device's memory."""
    found, definition = kernel_on(op, device, devices, table), table.op(op.op)
    if op.op == _CONSTANT or found is None or definition is None:
        return False
    return found.host_memory.isdisjoint(output.name for output in definition.outputs)


def input_copies(op: EagerOp, wanted: tuple[str, ...]) -> tuple[InputCopy, ...]:
    """List the inputs that are elsewhere than wanted: each execution copies them; handles of resources stay."""
    return tuple(
        InputCopy(i, each.device, target)
        for i, (each, target) in enumerate(zip(op.inputs, wanted, strict=True))
        if each.dtype != DataType.DT_RESOURCE and each.device != target
    )


def kernel_on(op: EagerOp, device: str, devices: DeviceSet, table: KernelTable) -> Kernel | None:
    """Return the kernel that runs an op on a device, None where there is none."""
    found = devices.find(device)
    try:
        return None if found is None else find_kernel(table, op.op, found.type, op.attrs)
    except (AttrError, KernelSearchError):
        return None


def _kernel_types(op: EagerOp, devices: DeviceSet, table: KernelTable) -> Types:
    """Return the device types with a kernel, best first; raise `Refused` where TensorFlow cannot tell."""
    try:
        return supported_device_types(table, op.op, op.attrs, devices.types)
    except (AttrError, KernelSearchError) as error:
        raise invalid_argument(str(error)) from error


def _host_arguments(op: EagerOp, kernel: Kernel | None, table: KernelTable) -> list[bool]:
    """List which inputs the kernel has registered for host memory (IsHostMemoryArg)."""
    definition = table.op(op.op)
    found = [False] * len(op.inputs)
    if kernel is not None and definition is not None:
        for name, start, stop in argument_ranges(definition, definition.inputs, with_defaults(definition, op.attrs)):
            found[start:stop] = [name in kernel.host_memory] * (stop - start)
    return found


def _input_device(given: EagerInput, is_host_argument: bool, device: str, devices: DeviceSet) -> str:
    if given.dtype == DataType.DT_RESOURCE or _is_remote(given.device, devices):
        return given.device
    if given.dtype in _HANDLES or (is_host_argument and given.dtype == DataType.DT_INT32):
        return devices.host.name
    return given.device if is_host_argument else device


def _is_sent(op: EagerOp, devices: DeviceSet) -> bool:
    """Return whether an op is for another task, which gets the device's name as it is (EagerRemoteExecute)."""
    spec = DeviceName.parse(op.scope)
    is_named = spec is not None and any(part is not None for part in spec[:3])
    return is_named and _is_remote(op.scope, devices) and not all(device.is_local for device in devices)


def _is_remote(device: str, devices: DeviceSet) -> bool:
    spec = DeviceName.parse(device)
    return spec is not None and not spec.same_address_space(devices.home)


def _no_kernel(op: EagerOp, table: KernelTable) -> str:
    registered = "".join(registration_text(kernel) for kernel in table.kernels(op.op)) or "  <no registered kernels>\n"
    return f"Could not find device for node: {{{{node {op.op}}}}}\nAll kernels registered for op {op.op}:\n{registered}"
