"""Run a graph with costs on one of the models of an executor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from simplace.costs.estimate import EstimatedGraph
from simplace.errors import SimplaceError, join_choices
from simplace.executor import tensorflow_executor, textbook_executor
from simplace.executor.control_flow import ControlFlow
from simplace.executor.step_options import StepOptions, Threads
from simplace.executor.trace import Trace

EXECUTORS: Mapping[str, Callable[[EstimatedGraph, ControlFlow, Threads], tuple[Trace, int]]] = {
    "tensorflow": tensorflow_executor.run_executor,
    "textbook": textbook_executor.run_executor,
}


@dataclass(frozen=True, slots=True)
class Execution:
    """Record of a run of a graph with costs: its trace, and how many events the simulation took."""

    estimated: EstimatedGraph
    flow: ControlFlow
    options: StepOptions
    trace: Trace
    events: int

    @property
    def limits(self) -> Mapping[str, int]:
        """Map full device names to the bytes of memory that each has, 0 where nothing limits it."""
        model, devices = self.estimated.model, self.estimated.graph.placed.devices
        return {d.name: d.memory or model.memory(d.type) for d in devices} | dict(self.options.limits)


def execute_graph(estimated: EstimatedGraph, flow: ControlFlow, options: StepOptions) -> Execution:
    """Run a graph with costs on the executor that the options name; raise `SimplaceError` for one of no such name."""
    if options.executor not in EXECUTORS:
        raise SimplaceError(f"{options.executor!r} is not an executor; choose one of: {join_choices(EXECUTORS)}")
    trace, events = EXECUTORS[options.executor](estimated, flow, options)
    return Execution(estimated, flow, options, trace, events)
