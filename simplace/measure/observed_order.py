"""A step simulated as a measured one ran: its node times, loops and branches, expensive ops, and order of edges.

TensorFlow keeps more than eight edges of a node in the order of addresses; that is observed in two steps. In one the
caller's thread ran all nodes in the order in which they became ready; which of its inputs makes a node ready may differ
from other steps, so that one of these tells more.
An op whose kernel takes about 8000 cycles may be cheap or expensive: TensorFlow was asked which ones are, and the trace
shows which ones were dispatched. The kernel of a VarHandleOp runs in traced steps only (`ExecutorState::Process` of
tensorflow/core/common_runtime/executor.cc): after ninety of these it has become cheap.
"""

from __future__ import annotations

from statistics import fmean

from simplace.costs.cost_model import Overheads
from simplace.costs.estimate import estimate_costs
from simplace.costs.recorded_costs import RecordedCosts
from simplace.costs.roofline import make_roofline
from simplace.executor.control_flow import control_flow
from simplace.executor.execution import Execution, execute_graph
from simplace.executor.kernel_stats import ASYNCHRONOUS, EXPENSIVE_CYCLES
from simplace.executor.observed_outcomes import observe_outcomes
from simplace.executor.session_run import ObservedOrder, with_observed_order
from simplace.executor.step_options import StepOptions
from simplace.graph.op_kinds import VARIABLE_HANDLE
from simplace.measure.measurement import MeasuredStep, Measurement
from simplace.measure.observed_dispatch import observe_dispatches
from simplace.partition.graph_partition import PartitionedGraph

_CHEAP, _EXPENSIVE = 0.0, 2 * EXPENSIVE_CYCLES / make_roofline().clock  # averages in seconds


def simulate_measured_step(
    graph: PartitionedGraph,
    measured: Measurement,
    step: MeasuredStep,
    fixed: Overheads,
    cores: int = 2,
    *,
    warm: bool = True,
    dispatches: bool = False,
) -> Execution:
    """Simulate one traced step with its own node times, iteration by iteration, and the branches that it took.

    With `dispatches`, ops near the limit of what is expensive go to another thread in those iterations in which they
    did; else those do that TensorFlow named before the step. What is left to chance is drawn for each step anew.
    """
    # Kernels were measured as this setting runs them, so they are not divided again: any size above 1 says so.
    intra_op = max(2, measured.intra_op)
    runs = _add_labels(step, fixed)
    means = {name: fmean(found) for name, found in runs.items()}
    seen = _observe_averages(graph, step) if dispatches else _make_averages(step)
    averages = _repeat_those_of_handles(graph, seen)
    costs = RecordedCosts("this run", means, make_roofline(), intra_op, True, fixed=fixed, averages=averages, runs=runs)
    options = StepOptions(inter_op=measured.inter_op, intra_op=1, cores=cores, warm=warm, seed=step.span)
    flow = control_flow(graph, observed=observe_outcomes(graph, control_flow(graph), step.order))
    return execute_graph(estimate_costs(graph, costs), flow, options)


def order_edges_as_observed(graph: PartitionedGraph, measured: Measurement, step: MeasuredStep) -> PartitionedGraph:
    """Return the graph with its edges in the order of `measured.edge_order`, and of a step's cheap nodes beside.

    Threads run cheap nodes in the order in which they become ready, as long as there are few threads.
    """
    always = {node.name for node in graph.nodes if node.op in ASYNCHRONOUS}
    of_step = ObservedOrder(step.order, step.expensive | always)
    return with_observed_order(graph, ObservedOrder(measured.edge_order), of_step)


def list_traced_nodes(run: Execution, step: MeasuredStep) -> list[str]:
    """Return the nodes by start, as far as a trace has them: dead nodes, sends and receives are not in it."""
    nodes, traced = run.estimated.graph.nodes, set(step.order)
    sources = [name for name in step.order if name == "_SOURCE"]
    ran = [nodes[s.node].name for s in run.trace.spans if nodes[s.node].role == "op" and s.kind == "op"]
    return sources + [name for name in ran if name in traced]


def _add_labels(step: MeasuredStep, fixed: Overheads) -> dict[str, tuple[float, ...]]:
    """Map each node to the times of its runs, with that of the trace's label, which is made before others start."""
    labels = {run.name: (run.label * fixed.label_s, run.names * fixed.name_s) for run in step.runs}
    found = {}
    for name, times in step.seconds_of_runs.items():
        again, first = labels[name]
        found[name] = tuple(time + again + (first if i == 0 else 0.0) for i, time in enumerate(times))
    return found


def _make_averages(step: MeasuredStep) -> dict[str, tuple[float, ...]]:
    """Return for each node an average well above the limit where it is expensive, else 0, in seconds."""
    return {name: (_EXPENSIVE if name in step.expensive else _CHEAP,) for name in step.order}


def _observe_averages(graph: PartitionedGraph, step: MeasuredStep) -> dict[str, tuple[float, ...]]:
    """Return for each run of each node what `_make_averages` does, as the trace shows it.

    Where a run does not show it, it is as the one before it; the first ones are as TensorFlow said before the step.
    """
    names = [node.name for node in graph.nodes]
    inputs = {name: {names[edge.src] for edge in edges} for name, edges in zip(names, graph.ins, strict=True)}
    averages = {}
    for name, dispatched in observe_dispatches(step.runs, inputs).items():
        last, own = name in step.expensive, []
        for one in dispatched:
            last = last if one is None else one
            own.append(_EXPENSIVE if last else _CHEAP)
        averages[name] = tuple(own)
    return averages


def _repeat_those_of_handles(
    graph: PartitionedGraph, averages: dict[str, tuple[float, ...]]
) -> dict[str, tuple[float, ...]]:
    """Return averages with those of handles twice: a single one would be what it is without tracing, where it stays."""
    handles = {node.name for node in graph.nodes if node.op == VARIABLE_HANDLE}
    return {name: 2 * found if name in handles else found for name, found in averages.items()}
