"""The memory of logical GPUs that a machine's GPUs are split into."""

from __future__ import annotations

from simplace.result import Placed
from simplace.targets import Settings


def find_split_limits(placed: Placed, settings: Settings) -> dict[str, int]:
    """Return the limits of logical GPUs from the machine, where it splits GPUs."""
    machine = settings.machine
    split = [limit for gpu in machine.visible_gpus for limit in machine.split_of(gpu) or (0,)]
    gpus = [device.name for device in placed.placement.devices if device.type == "GPU"]
    if len(gpus) != len(split):  # the program made logical GPUs of its own
        return {}
    return {name: limit for name, limit in zip(gpus, split, strict=True) if limit}
