"""A link that several devices, or several tasks, share."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DeviceLink:
    """Record of a shared link: `bandwidth` in bytes/s in each direction, 0 for that of one link of its kind.

    Of PCIe, `gpus` are the full names of the GPUs that share it. Of the network, `tasks` are the partial device names
    of the tasks that do, such as "/job:worker/replica:0/task:0".
    """

    name: str
    bandwidth: int
    gpus: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
