"""What only a run tells of a graph's order: edges beyond eight of a node, and ops about as long as the limit.

TensorFlow keeps more than eight edges of a node in the order of addresses, and an op whose kernel takes about 8000
cycles may be cheap or expensive: its moving average is not shown anywhere, and one preemption within a kernel makes
a cheap op expensive for some dozen runs. Both are learnt from one step on one thread, so that another step, with the
averages as they were, can be foretold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from simplace.costs.cost_model import Overheads
from simplace.costs.pricing import price
from simplace.costs.recorded import RecordedCosts
from simplace.costs.roofline import analytic
from simplace.executor.control_flow import control_flow
from simplace.executor.expensive import EXPENSIVE_CYCLES, INITIAL_CYCLES, can_be_expensive, settled_cycles
from simplace.executor.session_run import with_learnt_order
from simplace.executor.settings import Threads
from simplace.oracle.measure.measure import MeasuredStep, Measurement
from simplace.partition.partition import PartitionedGraph
from simplace.scheduling import Schedule, execute

_LIMIT = EXPENSIVE_CYCLES / analytic().clock  # seconds
_LONG = 5.0  # times the limit: tracing makes kernels longer, so one well above it may be cheap
_NEAR, _TRIES = 24, 40  # how many nodes about the first difference may be doubtful, how many are turned over


@dataclass(frozen=True)
class Learnt:
    """Hold a graph with the order of a run, and the seconds at which the averages of its ops have settled."""

    graph: PartitionedGraph
    averages: Mapping[str, float]


def simulated(
    learnt: Learnt, measured: Measurement, step: MeasuredStep, fixed: Overheads, cores: int = 2, *, warm: bool = True
) -> Schedule:
    """Simulate one traced step with its own node times, iteration by iteration."""
    # Kernels were measured as this setting runs them, so they are not divided again: any size above 1 says so.
    intra_op = max(2, measured.intra_op)
    costs = RecordedCosts(
        "this run", step.seconds, analytic(), intra_op, True, fixed=fixed, averages=learnt.averages,
        runs=step.seconds_of_runs,
    )  # fmt: skip
    threads = Threads(measured.inter_op, 1, cores, warm=warm)
    return execute(price(learnt.graph, costs), control_flow(learnt.graph), threads, "tensorflow", {})


def learn(
    graph: PartitionedGraph,
    measured: Measurement,
    step: MeasuredStep,
    averages: Mapping[str, float],
    *,
    warm: bool = True,
) -> Learnt:
    """Learn from one step; `averages` are what is known so far, at first the times of kernels.

    With several threads chance decides the order too, so the averages stay as they are.
    """
    found = _with_averages(graph, measured, step, averages, warm)
    if not warm or measured.inter_op != 1:
        return found
    right = _right(found, measured, step)
    can_be = {part.name for part in graph.nodes if can_be_expensive(part.op, "CPU")}
    doubtful = {name for name, time in measured.kernels.items() if name in can_be and time < _LONG * _LIMIT}
    for _ in range(_TRIES):
        nearest = sorted(range(len(step.order)), key=lambda place: abs(place - right))[:_NEAR]
        near = [name for name in dict.fromkeys(step.order[place] for place in nearest) if name in doubtful]
        better = None
        for name in near if right < len(step.runs) else ():
            turned = 0.0 if found.averages[name] > _LIMIT else 2 * _LIMIT
            other = _with_averages(graph, measured, step, {**found.averages, name: turned}, warm)
            same = _right(other, measured, step)
            if same > right:
                better, right = other, same
                break
        if better is None:
            break
        found = better
    return found


def order(run: Schedule, step: MeasuredStep) -> list[str]:
    """Name the nodes by start, as far as a trace has them: dead nodes, sends and receives are not in it."""
    nodes, traced = run.priced.graph.nodes, set(step.order)
    sources = [name for name in step.order if name == "_SOURCE"]
    ran = [nodes[s.node].name for s in run.trace.spans if nodes[s.node].role == "op" and s.kind == "op"]
    return sources + [name for name in ran if name in traced]


def _with_averages(
    graph: PartitionedGraph, measured: Measurement, step: MeasuredStep, averages: Mapping[str, float], warm: bool
) -> Learnt:
    def stays(node: int) -> bool:
        if measured.inter_op == -1:  # the caller's thread takes all in turn
            return True
        part = graph.nodes[node]
        cycles = settled_cycles(part.op, averages.get(part.name, 0.0) * analytic().clock) if warm else INITIAL_CYCLES
        return not can_be_expensive(part.op, "CPU") or cycles <= EXPENSIVE_CYCLES

    return Learnt(with_learnt_order(graph, step.order, stays), averages)


def _right(learnt: Learnt, measured: Measurement, step: MeasuredStep) -> int:
    """Count the nodes that a simulated step starts in the right order, up to the first difference."""
    found = order(simulated(learnt, measured, step, Overheads()), step)
    return _same_start(found, step.order)


def _same_start(one: Sequence[str], other: Sequence[str]) -> int:
    """Count what two lists begin with in common.

    >>> _same_start("abcd", "abdc")
    2
    """
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
