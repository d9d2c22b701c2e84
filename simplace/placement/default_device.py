"""The device of a function call, which is the default device of everything in the function, and of an eager op.

Mirrors SetOpDevice (tensorflow/core/common_runtime/eager/execute.cc) and SelectDevice (eager/context.cc): a function
has no kernels of its own, so every device type could run it, and its inputs don't count.
"""

from __future__ import annotations

from collections.abc import Sequence

from simplace.devices.device_name import DeviceName
from simplace.devices.device_set import Device, DeviceSet, type_order
from simplace.program.status import Refusal, Refused


def call_device(scope: str, devices: DeviceSet, soft_placement: bool) -> Device:
    """Return the device that a call under the device scope runs on; raise `Refused` where there is none.

    Devices are tried by type (GPU before CPU), local ones first, then by name. Without a scope, only those of the
    task that places are.
    """
    spec = (DeviceName.parse(scope) if scope else devices.home) or DeviceName()
    types = sorted({device.type for device in devices}, key=type_order)
    return select_device(spec, [(kind, 0) for kind in types], devices, soft_placement)


def select_device(
    spec: DeviceName, types: Sequence[tuple[str, int]], devices: DeviceSet, soft_placement: bool
) -> Device:
    """Return the first device that matches a request and is of the first possible type; raise `Refused` if none is.

    `types` are those with a kernel, best first, with their priorities. Soft placement looks for any device of the same
    task where none matches.
    """
    ordered = sorted(devices, key=lambda d: (*type_order(d.type), not d.is_local, d.name))
    for wanted in (spec, spec._replace(type=None, id=None)) if soft_placement else (spec,):
        for kind, _ in types:
            for device in ordered:
                if device.type == kind and wanted.matches(device.spec):
                    return device
    every = ", ".join(device.name for device in ordered)
    message = (
        f"Could not satisfy device specification '{spec}'. enable_soft_placement={int(soft_placement)}. "
        f"Supported device types [{', '.join(kind for kind, _ in types)}]. All available devices [{every}]."
    )
    raise Refused(Refusal("INVALID_ARGUMENT", message))
