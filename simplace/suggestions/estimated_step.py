"""The step of a program as it is, and as it would be with its nodes on other devices: without running it again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from simplace.analysis.batch_memory import BatchMemory
from simplace.analysis.schedule import Schedule
from simplace.analysis.step_memory import StepMemory
from simplace.devices.device_name import DeviceName
from simplace.errors import SimplaceError
from simplace.executor.step_options import StepOptions
from simplace.pipeline import place_program
from simplace.program.program import Pin
from simplace.result import Placed, Result


@dataclass(frozen=True)
class Step:
    """Record of a simulated step: `examples` is how many examples it takes in, 1 where that is unknown."""

    schedule: Schedule
    examples: int

    @classmethod
    def of(cls, placed: Placed, options: StepOptions) -> Step:
        """Simulate a step; raise `SimplaceError` for a placement that TensorFlow refuses."""
        schedule = Schedule.of(placed.placement, options)
        return cls(schedule, count_examples(placed, schedule))

    @property
    def nanoseconds(self) -> int:
        """Return the time of the step."""
        return self.schedule.trace.makespan

    @property
    def per_example(self) -> float:
        """Return the nanoseconds of an example."""
        return self.nanoseconds / self.examples


def count_examples(placed: Placed, schedule: Schedule) -> int:
    """Return how many examples a step takes in, over all replicas; 1 where that is unknown."""
    replicas = max((one.participants for one in placed.collectives), default=1)
    return max(BatchMemory.of(schedule).batch, 1) * replicas


def estimate_pinned(placed: Placed, pins: Mapping[str, str], options: StepOptions) -> int | None:
    """Return the nanoseconds of a step with nodes on other devices, None where TensorFlow would refuse that."""
    program, old = placed.placement.program, placed.placement
    wanted = tuple(read_pin_device(name, device) for name, device in pins.items())
    program = replace(program, pins=(*program.pins, *wanted))
    try:
        placement = place_program(program, old.devices, old.groups.support.table, soft_placement=old.soft_placement)
        return Schedule.of(placement, options).trace.makespan
    except SimplaceError:  # refused, or an argument that would be on a device that is not there
        return None


def step_fits(result: Result, placed: Placed, schedule: Schedule) -> bool:
    """Return whether a step fits in the memory of its devices, with the variables of the run's other functions."""
    others = [each.placement.program for each in result.programs if each is not placed]
    return StepMemory.of(schedule, others).fits


def read_pin_device(name: str, device: str) -> Pin:
    """Return the pin of a node to a device as a `tf.device` names it."""
    found = DeviceName.parse(device if "device:" in device else f"/device:{device.removeprefix('/')}")
    assert found is not None, device
    return Pin(name, found)
