"""The step of a program as it is, and as it would be with its nodes on other devices: without running it again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from simplace.analysis.device_comparison import count_examples, find_batch
from simplace.analysis.schedule import Schedule
from simplace.analysis.step_memory import StepMemory
from simplace.devices.device_name import DeviceName
from simplace.errors import SimplaceError
from simplace.executor.step_options import StepOptions
from simplace.pipeline import place_program
from simplace.placement.placement import Placement
from simplace.program.program import Pin, Program
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
        return cls(schedule, count_step_examples(schedule))

    @property
    def nanoseconds(self) -> int:
        """Return the time of the step."""
        return self.schedule.trace.makespan

    @property
    def per_example(self) -> float:
        """Return the nanoseconds of an example."""
        return self.nanoseconds / self.examples


def count_step_examples(schedule: Schedule) -> int:
    """Return how many examples a step takes in, over all replicas; 1 where that is unknown."""
    return max(1, count_examples(find_batch(schedule)))


def estimate_pinned(
    placed: Placed, pins: Mapping[str, str], options: StepOptions, program: Program | None = None
) -> int | None:
    """Return the nanoseconds of a step with nodes on other devices, None where TensorFlow would refuse that.

    A `program` given takes the place of the one that was placed.
    """
    old = placed.placement
    try:
        placement = place_pinned(old, pins, soft_placement=old.soft_placement, program=program)
        return Schedule.of(placement, options).trace.makespan
    except SimplaceError:  # refused, or an argument that would be on a device that is not there
        return None


def place_pinned(
    placement: Placement, pins: Mapping[str, str], *, soft_placement: bool, program: Program | None = None
) -> Placement:
    """Place a program again as if its nodes requested devices, by name; raise `SimplaceError` where that cannot be."""
    program = program or placement.program
    wanted = tuple(_read_pin(name, device) for name, device in pins.items())
    program = replace(program, pins=(*program.pins, *wanted))
    table = placement.groups.support.table
    return place_program(program, placement.devices, table, soft_placement=soft_placement)


def step_fits(result: Result, placed: Placed, schedule: Schedule) -> bool:
    """Return whether a step fits in the memory of its devices, with the variables of the run's other functions."""
    others = [each.placement.program for each in result.programs if each is not placed]
    return StepMemory.of(schedule, others).fits


def _read_pin(name: str, device: str) -> Pin:
    """Return the pin of a node to a device as a `tf.device` names it."""
    found = DeviceName.parse(device if "device:" in device else f"/device:{device.removeprefix('/')}")
    assert found is not None, device
    return Pin(name, found)
