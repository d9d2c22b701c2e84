"""What each process takes of the memory of its GPUs when TensorFlow starts, before any step.

Mirrors tensorflow/core/common_runtime/gpu/gpu_device.cc and gpu_bfc_allocator.cc: every visible GPU is taken, used or
not; with memory growth regions follow as they are needed, and a logical GPU takes its own limit.
"""

from __future__ import annotations

from dataclasses import dataclass

from simplace.analysis.schedule import Schedule


@dataclass(frozen=True, slots=True)
class StartMemory:
    """Record of what a process takes of one GPU at start, and at most later: bytes.

    `process` is a task ("/job:worker/task:1"), `device` a full name. `is_logical` says that the limit is the device's
    own, `is_used` that the step has ops or copies there. `fraction` is per_process_gpu_memory_fraction, 0 where it is
    not set or does not count.
    """

    process: str
    device: str
    at_start: int
    at_most: int
    is_logical: bool
    is_used: bool
    fraction: float = 0.0


def list_start_memory(schedule: Schedule, *, grows: bool) -> list[StartMemory]:
    """List the GPUs of the device set, by process; `grows` is the setting of memory growth."""
    limits, used, options = schedule.execution.limits, set(schedule.estimated.graph.devices), schedule.execution.options
    found = []
    for device in schedule.placement.devices:
        if device.type != "GPU" or not limits.get(device.name):
            continue
        is_logical = bool(device.memory or device.name in options.limits)
        found.append(
            StartMemory(
                device.task.replace("/replica:0", ""),
                device.name,
                0 if grows and not device.memory else limits[device.name],
                limits[device.name],
                is_logical,
                device.name in used,
                0.0 if is_logical else options.memory_fraction,
            )
        )
    return found
