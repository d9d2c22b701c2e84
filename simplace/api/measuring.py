"""Real steps on this computer's CPU, which are compared with simulated ones and are costs for other steps."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any

from simplace.costs.chosen_cpu import find_cpu, use_calibration
from simplace.costs.modelled_costs import make_modelled_costs
from simplace.costs.recorded_costs import RecordedCosts, cost_file
from simplace.errors import SimplaceError
from simplace.executor.step_options import Threads
from simplace.graph.op_kinds import CONSTANTS, VARIABLE_HANDLE
from simplace.importers.read_file import read_file
from simplace.importers.target import parse_target
from simplace.measure.measurement import Measured, MeasureOptions, measure_target
from simplace.measure.step_comparison import StepAgreement, check_schedule, fixed_times, observe_step
from simplace.result import Placed

_WARM_UP = 100  # steps after which the executor's moving averages of the ops' costs have settled


class RealSteps(Measured):
    """Record of measured steps that compares itself with simulated ones, prints and exports itself."""

    @cached_property
    def agreements(self) -> tuple[StepAgreement, ...]:
        """Return the comparison with simulated steps, one for each thread setting."""
        return check_schedule(self, cores=len(os.sched_getaffinity(0)))

    def to_json(self) -> dict[str, Any]:
        """Return the times of the first setting as JSON-ready data: a cost file, which `costs` of a schedule reads."""
        first = self.settings[0]
        return cost_file(
            first.seconds,
            intra_op=first.intra_op,
            fixed=fixed_times(self),
            averages=first.kernels,
            outcomes=observe_step(self),
            tensorflow=first.tensorflow,
            cpu=self.cpu,
        )

    def __str__(self) -> str:
        from simplace.views.text.step_agreement import write_agreement

        return write_agreement(self, self.agreements)

    def __repr__(self) -> str:
        return f"<{len(self.settings[0].steps)} real steps of {self.program.name}>"


def measure_steps(target: str, options: MeasureOptions) -> RealSteps:
    """Run real steps of a target in a child process; raise a `SimplaceError` for whatever the user can fix."""
    for inter_op, intra_op in options.settings:
        Threads(inter_op=inter_op, intra_op=intra_op)  # refuses before anything runs
    parsed = parse_target(target, has_signatures=True)
    if parsed.kind in ("graph", "saved_model"):
        read_file(parsed, None)  # refuses a damaged file in words, which TensorFlow does with a traceback
    return measure_target(target, _settle(options), RealSteps)


def measure_costs(
    target: str, placed: Placed, options: MeasureOptions, gpu: str, gpu_memory_fraction: float, cpu: str = ""
) -> RecordedCosts:
    """Measure a program of a target on one inter-op thread; return the times of its CPU kernels, and its branches.

    What is not measured is modelled, for the hardware that `gpu` and `cpu` name, without the latter for this CPU.
    """
    program = placed.placement.program
    narrowed = parse_target(target).function or program.kind != "function"
    named = target if narrowed else f"{target}:{program.name.split(' ')[0]}"
    found = measure_target(named, replace(_settle(options), calibrates=not cpu), Measured)
    step = found.settings[0]
    core = find_cpu(cpu) if cpu or found.cpu is None else use_calibration(found.cpu)
    rest = make_modelled_costs(gpu, gpu_memory_fraction, cpu=core)
    handed_over = set(_list_inputs(found)) - placed.placement.graph.ids.keys()
    seconds = {name: time for name, time in step.seconds.items() if name not in handed_over}
    costs = RecordedCosts(
        "a run just now", seconds, rest, 1, True, fixed=fixed_times(found),
        averages={name: (time,) for name, time in step.kernels.items()}, outcomes=observe_step(found), cpu=found.cpu,
    )  # fmt: skip
    if placed.clusters:
        _check_compiled(costs, placed)
    return costs


def _check_compiled(costs: RecordedCosts, placed: Placed) -> None:
    """Raise `SimplaceError` for a step that XLA compiles on its device, and does not where it was measured."""
    try:
        costs.check_belongs_to(placed.placement.graph.names)
    except SimplaceError as other:
        raise SimplaceError(
            f"{placed.title}: XLA compiles this step on {placed.clusters[0].device}, and does not on the CPU, where "
            "it was measured; --no-jit has the times of the step without XLA"
        ) from other


def _list_inputs(measured: Measured) -> Iterator[str]:
    """Yield the nodes that may stand for what the caller of a measured step hands over."""
    graph = measured.program.graph
    yield from (node.name for node in graph.nodes if node.op in CONSTANTS or node.op == VARIABLE_HANDLE)


def _settle(options: MeasureOptions) -> MeasureOptions:
    """Return options under which only settled steps are traced; the executor's fixed times are probed."""
    return replace(options, warm_up=_WARM_UP, probes=True)
