"""A step of one program on two machines, and the batch from which on the second one is faster, found by simulation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import hypot

from simplace.analysis.batch_growth import ELEMENTS, GIVEN
from simplace.analysis.batch_memory import BatchMemory
from simplace.analysis.schedule import Schedule
from simplace.analysis.time_sources import Kind, compare_errors
from simplace.costs.estimate import estimate_costs
from simplace.executor.execution import execute_graph
from simplace.executor.trace import PERMANENT
from simplace.placement.xla_compiler import find_clusters

_GAIN = 0.01
_MOST = 256  # times the batch: what no larger one makes faster, is not worth it


@dataclass(frozen=True, slots=True)
class DevicesTrial:
    """Record of a step on two machines, in nanoseconds, with a batch that is `factor` times the program's own.

    `errors` are how far off the two times are in the mean, as shares, and `quotient_error` their quotient.
    """

    factor: int
    before: int
    after: int
    errors: tuple[float, float]
    quotient_error: float


@dataclass(frozen=True, slots=True)
class DeviceComparison:
    """Record of a step on two machines, with the program's own batch first, then with larger ones.

    `examples` is how many a step takes in on each machine, as it is: a strategy may give each replica a batch. Where
    the batch is not known, for the reason `unknown`, it is (1, 1), and there is one trial. A gain of `least` counts.
    """

    before: Schedule
    after: Schedule
    examples: tuple[int, int]
    trials: tuple[DevicesTrial, ...]
    unknown: str = ""
    least: float = _GAIN

    def change(self, trial: DevicesTrial) -> float:
        """Return by what part of itself the time of an example grows on the second machine."""
        per_example = trial.before / self.examples[0]
        return trial.after / self.examples[1] / per_example - 1 if per_example else 0.0

    def find_change_error(self, trial: DevicesTrial) -> float:
        """Return how far off the change is in the mean, as a part of the time of an example on the first machine."""
        return (1 + self.change(trial)) * trial.quotient_error

    @property
    def worth_from(self) -> DevicesTrial | None:
        """Return the first trial in which the second machine is faster by what counts, None for none."""
        return next((one for one in self.trials if self.change(one) <= -self.least), None)


def compare_devices(before: Schedule, after: Schedule, least: float = _GAIN, beside: int = 0) -> DeviceComparison:
    """Compare a step on two machines; where the second is not faster by `least`, double the batch until it is.

    On the second, what goes on beside a step takes `beside` nanoseconds with the program's own batch.
    """
    sides = [find_batch(one) for one in (before, after)]
    own = _try_batch(1, before, after, beside)
    for side in sides:
        if not side.growing or find_clusters(side.schedule.placement):
            return DeviceComparison(before, after, (1, 1), (own,), _explain_unknown(side), least)
    examples = count_examples(sides[0]), count_examples(sides[1])
    found = DeviceComparison(before, after, examples, (own,), least=least)
    while found.worth_from is None and found.trials[-1].factor < _MOST:
        factor = 2 * found.trials[-1].factor
        first, second = (scale_batch(side, factor) for side in sides)
        found = replace(found, trials=(*found.trials, _try_batch(factor, first, second, factor * beside)))
    return found


def _try_batch(factor: int, before: Schedule, after: Schedule, beside: int) -> DevicesTrial:
    makespans = before.trace.makespan, max(after.trace.makespan, beside)
    off: Mapping[Kind, float] = after.errors
    if beside > after.trace.makespan:
        off = {"copy": after.estimated.model.assume_reliability("copy").error}
    errors = before.uncertainty, hypot(*off.values())
    is_one_model = before.estimated.model.name == after.estimated.model.name  # which is off alike on both machines
    quotient_error = compare_errors(before.errors, off) if is_one_model else hypot(*errors)
    return DevicesTrial(factor, *makespans, errors, quotient_error)


def count_examples(memory: BatchMemory) -> int:
    """Count the examples of a step: one batch, or one for each element that is taken or each device that gets inputs.

    Where GPUs get some, what is on the CPU is another part of the same examples, such as their labels. On a branch that
    is not taken, none is.
    """
    nodes, outputs = memory.schedule.estimated.graph.nodes, memory.schedule.estimated.outputs
    ran = {span.node for span in memory.schedule.trace.spans if span.kind != "dead"}
    given = [
        node
        for i, node in enumerate(nodes)
        if node.op in GIVEN and any(tensor.shape[:1] == (memory.batch,) and tensor.size for tensor in outputs[i])
        if i in ran or node.op not in ELEMENTS
    ]
    elements = sum(node.op in ELEMENTS for node in given)
    given_on = {node.device for node in given}
    devices = memory.schedule.placed.devices.by_name
    gpus = {device for device in given_on if devices[device].type == "GPU"}
    return memory.batch * max(1, elements, len(gpus or given_on))


def scale_batch(memory: BatchMemory, factor: int) -> Schedule:
    """Simulate the step with a batch that is so many times as large: what grows with it is estimated anew."""
    schedule = memory.schedule
    nodes, options = schedule.estimated.graph.nodes, schedule.execution.options
    growing = {(nodes[node].origin, 0 if slot == PERMANENT else slot) for node, slot in memory.growing}
    graph, model = schedule.estimated.graph, schedule.estimated.model
    estimated = estimate_costs(graph, model, batch=options.batch, growing=growing, factor=factor)
    return replace(schedule, execution=execute_graph(estimated, schedule.flow, options))


def find_batch(schedule: Schedule) -> BatchMemory:
    """Find the batch of a step, of which each GPU may have a part."""
    gpus = sum(device.type == "GPU" for device in schedule.placed.devices)
    return BatchMemory.of(schedule, max(1, gpus))


def _explain_unknown(side: BatchMemory) -> str:
    if find_clusters(side.schedule.placement):
        return "XLA compiles a part of the step, and how long that takes with another batch is not simulated"
    if not side.batch:
        return "nothing that the program is given has a first dimension that could be the batch"
    if side.loop:
        return f"the loop {side.loop} runs {side.batch:,} times, perhaps once for each example"
    name = side.schedule.estimated.graph.nodes[side.clash].name
    return f"{name} reads a variable whose first dimension is {side.batch:,}, too"
