"""Compare simulated steps with real ones: the same graph, the same kernel times, this computer's CPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from simplace.costs.recorded import RecordedCosts
from simplace.costs.roofline import analytic
from simplace.errors import TargetError
from simplace.oracle.measure.measure import MeasuredStep, Measurement, measure
from simplace.placement.placement import Placement
from simplace.scheduling import Schedule, schedule

_QUIET = 1.2  # steps longer than this times the fastest were disturbed by something else on the computer


@dataclass(frozen=True, slots=True)
class Agreement:
    """Compare one thread setting.

    `measured` and `simulated` are medians of steps in nanoseconds, `ratio` the median of their quotients, `same_order`
    counts the steps whose nodes started in the simulated order, `steps` those that were not disturbed.
    """

    inter_op: int
    intra_op: int
    measured: float
    simulated: float
    ratio: float
    same_order: int
    steps: int


def check_schedule(
    file: Path,
    placement: Placement,
    *,
    inter_op: Sequence[int] = (1, 2),
    intra_op: int = 1,
    cores: int = 2,
    steps: int = 12,
    warm_up: int = 100,
    onednn: bool = False,
) -> tuple[Agreement, ...]:
    """Run a graph file for each inter-op size, and simulate each traced step with its own kernel times.

    Disturbed steps are left out. Raises `TargetError` where the placement uses more than CPUs.
    """
    strange = sorted({device.type for device in placement.devices if device.type != "CPU"})
    if strange:
        raise TargetError(f"{file}: a check runs on CPUs alone, not on {', '.join(strange)}; use --devices cpu:1")
    found, gap = [], 0.0
    for size in inter_op:
        options = {"intra_op": intra_op, "cpus": len(placement.devices), "warm_up": warm_up, "steps": steps}
        measured = measure(file, inter_op=size, onednn=onednn, **options)
        if size == 1:
            gap = measured.gap
        found.append(_agreement(placement, measured, gap, cores))
    return tuple(found)


def _agreement(placement: Placement, measured: Measurement, gap: float, cores: int) -> Agreement:
    least = min(step.span for step in measured.steps)
    quiet = [step for step in measured.steps if step.span <= _QUIET * least]
    runs = [_simulated(placement, measured, step, gap, cores) for step in quiet]
    ratios = [run.trace.makespan / step.span for run, step in zip(runs, quiet, strict=True)]
    same = sum(_order(run, step) == step.order for run, step in zip(runs, quiet, strict=True))
    return Agreement(
        measured.inter_op,
        measured.intra_op,
        median(step.span for step in quiet),
        median(run.trace.makespan for run in runs),
        median(ratios),
        same,
        len(quiet),
    )


def _simulated(placement: Placement, measured: Measurement, step: MeasuredStep, gap: float, cores: int) -> Schedule:
    # Kernels were measured as this setting runs them, so they are not divided again: any size above 1 says so.
    costs = RecordedCosts("this run", step.seconds, analytic(), max(2, measured.intra_op), True, gap)
    return schedule(placement, costs=costs, inter_op=measured.inter_op, intra_op=1, cores=cores)


def _order(run: Schedule, step: MeasuredStep) -> list[str]:
    """Name the nodes by start, as far as a trace has them: dead nodes, sends and receives are not in it."""
    nodes, traced = run.priced.graph.nodes, set(step.order)
    sources = [name for name in step.order if name == "_SOURCE"]
    ran = [nodes[s.node].name for s in run.trace.spans if nodes[s.node].role == "op"]
    return sources + [name for name in ran if name in traced]
