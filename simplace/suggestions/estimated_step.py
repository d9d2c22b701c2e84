"""The step of a program as it is, and as it would be with its nodes on other devices: without running it again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import hypot
from typing import NamedTuple

from simplace.analysis.device_comparison import count_examples, find_batch
from simplace.analysis.memory import MemoryUse
from simplace.analysis.schedule import Schedule
from simplace.analysis.step_memory import StepMemory, list_uses
from simplace.analysis.time_sources import Kind
from simplace.devices.device_name import DeviceName
from simplace.errors import SimplaceError
from simplace.executor.step_options import StepOptions
from simplace.graph.node_def import FuncRef
from simplace.pipeline import place_program
from simplace.placement.placement import Placement
from simplace.program.program import Pin, Program
from simplace.result import Placed, Result
from simplace.suggestions.input_pipeline import MapTime, UntimedInput, find_slowest_map, find_untimed_input


class Estimate(NamedTuple):
    """Record of a step as it would be; of two the smaller is better, and all that fit in memory are before the others.

    `missing` is the bytes that devices lack, 0 where the step fits; where the program as it is does not, a tenth of the
    memory counts as not there.
    """

    missing: int
    nanoseconds: int


@dataclass(frozen=True)
class Step:
    """Record of a simulated step and its memory: `examples` is how many it takes in, 1 where that is unknown.

    Beside it go on the map functions of its dataset, of which `input` is the slowest, and the copies of the elements
    of the next step, which take `copied` nanoseconds. `given` is the nanoseconds that copies take before it begins,
    `woken` those that it waits for threads to wake.
    `untimed` is a function of the dataset that calls Python, which may take longer than all that.
    """

    schedule: Schedule
    memory: StepMemory
    examples: int
    input: MapTime | None = None
    copied: int = 0
    given: int = 0
    woken: int = 0
    untimed: UntimedInput | None = None

    @classmethod
    def of(cls, result: Result, placed: Placed, options: StepOptions, examples: int = 0) -> Step:
        """Simulate a step, of `examples` if the graph does not tell; raise `SimplaceError` for a refused placement."""
        schedule = Schedule.of(placed.placement, options)
        told = count_step_examples(schedule)
        count = told if told > 1 else max(told, examples)
        memory, slowest = follow_memory(result, placed, schedule), find_slowest_map(result, schedule, count, options)
        return cls(schedule, memory, count, slowest, untimed=find_untimed_input(result, schedule, count))

    @property
    def missing(self) -> int:
        """Return the bytes that devices lack, 0 where the step fits in memory."""
        return sum_missing(self.memory.uses)

    @property
    def nanoseconds(self) -> int:
        """Return the time from one step to the next: that of the step, or of what goes on beside it."""
        return max(self.given + self.woken + self.schedule.trace.makespan, self._input_time, self.copied)

    @property
    def is_input_bound(self) -> bool:
        """Return whether the next step waits for the functions of the dataset."""
        return self._input_time == self.nanoseconds

    @property
    def errors(self) -> Mapping[Kind, float]:
        """Return how far off the time is for each kind of error, as shares of it."""
        if self.input is not None and self.is_input_bound:
            return self.input.errors
        if self.copied == self.nanoseconds:
            return {"copy": self.schedule.estimated.model.assume_reliability("copy").error}
        return self.schedule.errors

    @property
    def uncertainty(self) -> float:
        """Return how far off the time is in the mean, as a share."""
        return hypot(*self.errors.values())

    @property
    def _input_time(self) -> int:
        return 0 if self.input is None else self.input.nanoseconds

    @property
    def per_example(self) -> float:
        """Return the nanoseconds of an example."""
        return self.nanoseconds / self.examples


def count_step_examples(schedule: Schedule) -> int:
    """Return how many examples a step takes in, over all replicas; 1 where that is unknown."""
    return max(1, count_examples(find_batch(schedule)) or _count_given(schedule.placement.program))


def _count_given(program: Program) -> int:
    """Return the most common first dimension of what a function that XLA compiles whole is given, 0 for none.

    Its arguments are no nodes of the graph, which has the call alone.
    """
    if program.kind != "compiled":
        return 0
    called = next(value.name for value in program.graph.nodes[0].attrs.values() if isinstance(value, FuncRef))
    notes, function = program.notes.get(called, {}), program.graph.library[called]
    shapes = (shape for arg in function.inputs if arg.name in notes for shape in notes[arg.name].shapes)
    found = Counter(shape[0] for shape in shapes if shape and shape[0] > 0)
    return max(found, key=lambda size: (found[size], size), default=0)


def estimate_pinned(
    placed: Placed,
    others: Sequence[Program],
    pins: Mapping[str, str],
    options: StepOptions,
    program: Program | None = None,
    share: float = 1.0,
) -> Estimate | None:
    """Estimate a step with nodes on other devices, None where TensorFlow would refuse that.

    `others` are the run's other functions, whose variables take memory, too. A `program` given takes the place of the
    one that was placed. It may use that share of the memory.
    """
    old = placed.placement
    try:
        placement = place_pinned(old, pins, soft_placement=old.soft_placement, program=program)
        schedule = Schedule.of(placement, options)
    except SimplaceError:  # refused, or an argument that would be on a device that is not there
        return None
    return Estimate(sum_missing(list_uses(schedule, others, share)), schedule.trace.makespan)


def place_pinned(
    placement: Placement, pins: Mapping[str, str], *, soft_placement: bool, program: Program | None = None
) -> Placement:
    """Place a program again as if its nodes requested devices, by name; raise `SimplaceError` where that cannot be."""
    program = program or placement.program
    wanted = tuple(_read_pin(name, device) for name, device in pins.items())
    program = replace(program, pins=(*program.pins, *wanted))
    table = placement.groups.support.table
    return place_program(program, placement.devices, table, soft_placement=soft_placement)


def follow_memory(result: Result, placed: Placed, schedule: Schedule) -> StepMemory:
    """Return the memory of a step, with the variables of the run's other functions."""
    return StepMemory.of(schedule, list_others(result, placed))


def list_others(result: Result, placed: Placed) -> list[Program]:
    """List the programs of a run besides one."""
    return [each.placement.program for each in result.programs if each is not placed]


def sum_missing(uses: Iterable[MemoryUse]) -> int:
    """Sum the bytes by which the tensors of a step exceed memory; 1 for a device with enough, but in pieces."""
    return sum(max(1, use.peak - use.limit) for use in uses if use.runs_out >= 0)


def _read_pin(name: str, device: str) -> Pin:
    """Return the pin of a node to a device as a `tf.device` names it."""
    found = DeviceName.parse(device if "device:" in device else f"/device:{device.removeprefix('/')}")
    assert found is not None, device
    return Pin(name, found)
