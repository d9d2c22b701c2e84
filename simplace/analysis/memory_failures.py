"""Predict that a step will not fit in the memory of logical GPUs, whose limits the program itself sets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from simplace.analysis.memory import MemoryUse
from simplace.analysis.memory_kinds import find_origin
from simplace.analysis.schedule import Schedule
from simplace.analysis.step_memory import StepMemory
from simplace.errors import SimplaceError
from simplace.executor.step_options import StepOptions
from simplace.explain.failures import OutOfMemory
from simplace.graph.dtypes import name_in_messages
from simplace.placement.placement import Placement
from simplace.placement.xla_compiler import find_clusters

_MOST = 5_000  # nodes: the step of a larger program takes seconds to simulate


def find_out_of_memory(placements: Iterable[Placement]) -> Iterator[OutOfMemory]:
    """Yield the programs of a run whose step does not fit, once for each device.

    The memory of whole GPUs is not known here: `simplace memory --gpu NAME` asks for it.
    """
    every = [placement for placement in placements if placement.refusal is None and placement.order]
    for placement in every:
        limits = {device.name: device.memory for device in placement.devices if device.memory}
        if not limits or len(placement.graph) > _MOST or find_clusters(placement):
            continue
        others = [each.program for each in every if each is not placement]
        try:
            schedule = Schedule.of(placement, StepOptions(limits=limits))
        except SimplaceError:  # it has no step to follow, which `schedule` and `memory` explain
            continue
        memory = StepMemory.of(schedule, others)
        yield from (_describe(memory, use) for use in memory.uses if use.runs_out >= 0)


def _describe(memory: StepMemory, use: MemoryUse) -> OutOfMemory:
    placement, graph = memory.schedule.placement, memory.schedule.estimated.graph
    device = placement.devices.by_name[use.device]
    origin = find_origin(memory.schedule, use.runs_out)
    outputs = memory.schedule.estimated.outputs[use.runs_out]
    error = "OOM when allocating tensor"
    if outputs:
        shape = ",".join(map(str, outputs[0].shape))
        dtype = name_in_messages(memory.schedule.placed.graph.out_types[graph.nodes[use.runs_out].origin][0])
        allocator = f"{device.type}_{device.spec.id}_bfc"
        error += f" with shape[{shape}] and type {dtype} on {use.device} by allocator {allocator}"
    return OutOfMemory(
        graph.source_line(use.runs_out),
        placement.program.title,
        (memory.schedule.placed.graph.names[origin] if origin >= 0 else graph.nodes[use.runs_out].name,),
        error,
        device.short,
        memory.needed(use),
        use.limit + memory.others[use.device].size,
        memory.batch,
        memory.largest_batch,
        caught_at=placement.program.catches(*OutOfMemory.codes),
    )
