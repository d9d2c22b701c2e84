"""Describe devices to Grappler, which asks for the compute capability of GPUs, among other things."""

from __future__ import annotations

from simplace.costs.gpu_sheets import find_sheet
from simplace.devices.device_set import DeviceSet
from simplace.errors import SimplaceError

_CPU_CLOCK = 2500  # MHz


def describe_devices(devices: DeviceSet, gpu: str, cores: int) -> list[dict[str, object]]:
    """Describe devices as TensorFlow does (core/grappler/clusters/utils.cc); all GPUs are alike.

    The fields are those of `DeviceProperties` (core/protobuf/device_properties.proto): MHz, bytes, KB a second. Raises
    `SimplaceError` for a GPU without a data sheet.
    """
    sheet = find_sheet(gpu)
    found: list[dict[str, object]] = []
    for device in devices:
        if device.type == "GPU":
            if sheet is None:
                raise SimplaceError(
                    f"Grappler asks for the compute capability of {gpu!r}, which no data sheet here has"
                )
            found.append({
                "name": device.name, "type": "GPU", "num_cores": sheet.sms, "frequency": int(sheet.clock / 1e6),
                "memory_size": device.memory or int(sheet.memory), "bandwidth": int(sheet.bandwidth / 1e3),
                "environment": {"architecture": f"{sheet.capability:.1f}"},
            })  # fmt: skip
        elif device.type == "CPU":
            found.append({"name": device.name, "type": "CPU", "num_cores": cores, "frequency": _CPU_CLOCK})
    return found
