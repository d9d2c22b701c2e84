"""A step with all that its GPUs compute on the first of them, as if the program had requested that one alone."""

from __future__ import annotations

from dataclasses import replace

from simplace.analysis.schedule import Schedule
from simplace.analysis.step_memory import list_uses
from simplace.analysis.time_sources import compare_errors
from simplace.errors import SimplaceError
from simplace.explain.waiting_findings import OneGpuStep
from simplace.graph.op_kinds import is_arg
from simplace.pipeline import place_again
from simplace.placement.placement import Placement
from simplace.program.program import Pin

_LEAST = 0.03  # of the step: less is within the error of any cost model


def try_one_gpu(schedule: Schedule) -> OneGpuStep | None:
    """Return what the first of several busy GPUs saves if it computes everything; None where that is not sure.

    Replicas that sum up by a collective are of a strategy: with another one the program would make another graph.
    """
    devices = schedule.placed.devices
    busy = [one.device for one in schedule.device_times if not one.is_idle]
    gpus = [device.name for device in devices if device.type == "GPU" and device.name in busy]
    if len(gpus) < 2 or schedule.estimated.graph.collectives:
        return None
    try:
        alone = Schedule.of(_place_on(schedule.placement, gpus[0], gpus[1:]), schedule.execution.options)
    except SimplaceError:  # refused, as two variables of one name would be
        return None
    saves = 1 - alone.trace.makespan / schedule.trace.makespan
    error = (1 - saves) * compare_errors(schedule.errors, alone.errors)
    is_sure = saves >= _LEAST and saves > error and all(use.runs_out < 0 for use in list_uses(alone))
    return OneGpuStep(devices.by_name[gpus[0]].short, saves, error) if is_sure else None


def _place_on(placement: Placement, home: str, others: list[str]) -> Placement:
    """Place a program again as if it requested one GPU for all that is on others, what it is given included."""
    program, graph, spec = placement.program, placement.graph, placement.devices.by_name[home].spec
    moved = [node for node in placement.decisions if placement.device(node) in others and not is_arg(graph.ops[node])]
    program = replace(
        program,
        pins=(*program.pins, *(Pin(graph.names[node], spec) for node in moved)),
        arg_devices=tuple(home if one in others else one for one in program.arg_devices),
        kept_devices={name: home if one in others else one for name, one in program.kept_devices.items()},
    )
    return place_again(placement, program)
