"""Compare simulated steps with real ones: the same graph, the same kernel times, this computer's CPU."""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import fmean, median, median_low

from simplace.costs.calibration import derive_overheads
from simplace.costs.cost_model import Overheads
from simplace.costs.outcomes import Outcomes
from simplace.costs.roofline import make_roofline
from simplace.devices.device_set import local_devices
from simplace.executor.control_flow import control_flow
from simplace.executor.execution import Execution
from simplace.executor.observed_outcomes import observe_outcomes
from simplace.executor.session_run import prune_to_targets
from simplace.kernels.installed import installed_version
from simplace.kernels.registry import KernelTable
from simplace.measure.measurement import Measured, MeasuredStep, Measurement
from simplace.measure.observed_order import list_traced_nodes, order_edges_as_observed, simulate_measured_step
from simplace.partition.graph_partition import PartitionedGraph, partition_graph
from simplace.pipeline import place_program

_LEAST = 5  # untraced steps, however many are slower


@dataclass(frozen=True, slots=True)
class StepAgreement:
    """Record of the comparison of one thread setting.

    `measured` and `simulated` are medians of steps in nanoseconds, `ratio` the median of their quotients, `low` and
    `high` the quartiles, over `steps`, those of `traced` that nothing delayed. `same_order` counts, of the `held` steps
    whose moving averages held still, all but the first, those whose nodes started in the simulated order. `disturbed`
    is the median share of `steps` for which a thread had no core. `untraced` is the median of steps without tracing,
    with what Python adds, in nanoseconds.
    """

    inter_op: int
    intra_op: int
    measured: float
    simulated: float
    ratio: float
    low: float
    high: float
    steps: int
    traced: int
    held: int
    same_order: int
    disturbed: float
    untraced: float


def check_schedule(measured: Measured, *, cores: int = 2) -> tuple[StepAgreement, ...]:
    """Simulate each traced step of a measurement with its own kernel times, a thread setting at a time.

    The graph that ran is placed on one CPU; `cores` is how many threads run at once. The first held step is only
    observed: it tells more of the order of more than eight edges of a node. The executor's fixed times are those of the
    measurement's probes, at the pace that the machine had at that step; without any, the gap between two nodes is taken
    from its steps on one thread.
    """
    graph = graph_that_ran(measured)
    return tuple(_compare_setting(graph, own, fixed_times(measured, own), cores) for own in measured.settings)


def graph_that_ran(measured: Measured) -> PartitionedGraph:
    """Place the graph of a measurement on one CPU, and keep what its steps needed of it."""
    placement = place_program(measured.program, local_devices([("CPU", 1)]), KernelTable.shipped(installed_version()))
    return prune_to_targets(partition_graph(placement.placed), measured.targets)


def fixed_times(measured: Measured, setting: Measurement | None = None) -> Overheads:
    """Return the executor's fixed times that go with the node times of a measurement, at its usual pace.

    They are those of a thread setting, the first one by default.
    """
    own = setting or measured.settings[0]
    if measured.probes:
        nodes = median_low(len(step.runs) for step in own.steps)
        return derive_overheads(measured.probes, measured.pace, nodes, own.inter_op)
    gap = max((one.gap for one in measured.settings), default=0.0)
    return replace(make_roofline().overheads, op_s=gap, dead_s=gap, fork_s=0.0)


def observe_step(measured: Measured) -> Outcomes:
    """Return what the loops and branches of a measurement did in a step of its first setting."""
    graph = graph_that_ran(measured)
    return observe_outcomes(graph, control_flow(graph), measured.settings[0].quiet_steps[0].order)


def _adapt_to_step(fixed: Overheads, step: MeasuredStep, pace: float) -> Overheads:
    """Return the fixed times as they are on the machine at a step; `pace` is what they hold for, 0 where unknown."""
    own = fixed.slower(step.pace / pace) if pace and step.pace else fixed
    if not step.sharing:
        return own
    contention, more = (fmean(values) for values in zip(*step.sharing, strict=True))
    return replace(own, shared_s=more / 1e9, contention=contention)


def _compare_setting(graph: PartitionedGraph, measured: Measurement, fixed: Overheads, cores: int) -> StepAgreement:
    """Compare a setting; `fixed` holds for its pace, and each step has its own."""
    first, *held = measured.held
    found = order_edges_as_observed(graph, measured, first)
    steps = measured.undelayed_steps
    lengths = [
        _measure_length(
            simulate_measured_step(
                found, measured, step, _adapt_to_step(fixed, step, measured.pace), cores, dispatches=True
            )
        )
        for step in steps
    ]
    spans = [step.span for step in steps]
    ratios = sorted(length / span for length, span in zip(lengths, spans, strict=True))
    untraced = sorted(step.untraced for step in measured.steps)
    return StepAgreement(
        measured.inter_op,
        measured.intra_op,
        median(spans),
        median(lengths),
        median(ratios),
        ratios[len(ratios) // 4],
        ratios[-1 - len(ratios) // 4],
        len(steps),
        len(measured.steps),
        len(held),
        sum(
            list_traced_nodes(simulate_measured_step(found, measured, step, fixed, cores), step) == step.order
            for step in held
        ),
        median(measured.measure_delay(step) for step in steps),
        median(untraced[: max(_LEAST, len(untraced) // 4)]),
    )


def _measure_length(run: Execution) -> int:
    """Return the time from the first start to the end: a trace begins where the first node does."""
    return run.trace.makespan - min(span.start for span in run.trace.spans)
