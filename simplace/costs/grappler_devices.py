"""Describe devices to Grappler, which asks for the compute capability of GPUs, among other things."""

from __future__ import annotations

from simplace.costs.gpu_sheets import find_sheet
from simplace.devices.device_set import DeviceSet
from simplace.errors import SimplaceError
from simplace.oracle.grappler import GrapplerDevice

_CPU_CLOCK = 2500  # MHz


def describe_devices(devices: DeviceSet, gpu: str, cores: int) -> list[GrapplerDevice]:
    """Describe devices as TensorFlow does (core/grappler/clusters/utils.cc); all GPUs are alike."""
    sheet, found = find_sheet(gpu), []
    for device in devices:
        if device.type == "GPU":
            if sheet is None:
                raise SimplaceError(
                    f"Grappler asks for the compute capability of {gpu!r}, which no data sheet here has"
                )
            memory = device.memory or int(sheet.memory)
            environment = {"architecture": f"{sheet.capability:.1f}"}
            found.append(
                GrapplerDevice(device.name, "GPU", sheet.sms, int(sheet.clock / 1e6), memory,
                               int(sheet.bandwidth / 1e3), environment)
            )  # fmt: skip
        elif device.type == "CPU":
            found.append(GrapplerDevice(device.name, "CPU", cores, _CPU_CLOCK, 0, 0))
    return found
