"""Host memory under TensorFlow's allocator of GPUs, which TF_CPU_ALLOCATOR_USE_BFC selects: its limit, its contents.

Mirrors `GetCPUAllocator` of tensorflow/core/common_runtime/process_state.cc.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from simplace.analysis.memory_replay import MemoryBefore
from simplace.analysis.schedule import Schedule
from simplace.devices.device_set import Device
from simplace.graph.op_kinds import CONSTANTS
from simplace.partition.constant_folding import is_folded
from simplace.program.allocation_log import Allocation
from simplace.result import Placed, Result

_MOST_MB = 1 << 16  # where TF_CPU_BFC_MEM_LIMIT_IN_MB is not set


def find_limits(placed: Placed, environment: Mapping[str, str]) -> dict[str, int]:
    """Return the bytes that the environment limits host memory to, by device; {} where it does not ask for a limit."""
    if environment.get("TF_CPU_ALLOCATOR_USE_BFC", "").lower() not in ("1", "true"):
        return {}
    limit = environment.get("TF_CPU_BFC_MEM_LIMIT_IN_MB", "")
    return {host.name: (int(limit) if limit.isdecimal() else _MOST_MB) << 20 for host in _list_hosts(placed)}


def find_allocations(result: Result, placed: Placed) -> tuple[Allocation, ...]:
    """Return what a run did in host memory before the first call of a program.

    () where it was not asked.
    """
    if result.allocations is None:
        return ()
    return result.allocations.before(placed.placement.program.function)


def describe_before(schedule: Schedule, allocations: Sequence[Allocation]) -> dict[str, MemoryBefore]:
    """Return the memory of each host as the step begins: the allocator takes regions of it as they are needed."""
    nodes = schedule.estimated.graph.nodes
    constants = frozenset(i for i, node in enumerate(nodes) if node.op in CONSTANTS)
    folded = frozenset(i for i in constants if is_folded(schedule.estimated.graph, i))
    hosts = [device.name for device in schedule.placement.devices if device.type == "CPU"]
    if not allocations or len(hosts) != 1:
        return {}
    return {hosts[0]: MemoryBefore(tuple(allocations), grows=True, constants=constants, folded=folded)}


def _list_hosts(placed: Placed) -> list[Device]:
    return [device for device in placed.placement.devices if device.type == "CPU"]
