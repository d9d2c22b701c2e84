"""Create the cost model that a user names."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from dataclasses import replace

from simplace.costs.chosen_cpu import find_cpu, use_calibration
from simplace.costs.cost_model import CostModel
from simplace.costs.flat_costs import FlatCosts
from simplace.costs.modelled_costs import make_modelled_costs
from simplace.costs.outcomes import Outcomes
from simplace.costs.recorded_costs import RecordedCosts, recorded_costs
from simplace.costs.roofline import make_roofline

NAMES = ("modelled", "analytic", "flat")
MEASURED = "measured"  # as commands call what they measure before they simulate


def cost_model(name: str, gpu: str = "a100", gpu_memory_fraction: float = 0.0, cpu: str = "") -> CostModel:
    """Return the cost model of a name: "modelled", "analytic" (the roofline), "flat", or a file of recorded costs.

    What a file does not name is modelled; `cpu` is what `chosen_cpu.find_cpu` takes, without it the CPU that the file
    was measured on.
    """
    core = find_cpu(cpu)
    if name == "flat":
        return FlatCosts()
    if name == "analytic":
        return make_roofline(gpu, gpu_memory_fraction, core)
    model = make_modelled_costs(gpu, gpu_memory_fraction, cpu=core)
    if name == "modelled":
        return model
    recorded = recorded_costs(name, model)
    if cpu or recorded.cpu is None:
        return recorded
    return replace(recorded, rest=make_modelled_costs(gpu, gpu_memory_fraction, cpu=use_calibration(recorded.cpu)))


def find_cores(costs: CostModel | str, cpu: str = "") -> int:
    """Return how many threads run at once on the CPU that costs are for: on `cpu` where it is named.

    Else on the one that `costs` were measured on, of a file or just now, where that is known; else on the one of two
    cores.
    """
    if not cpu and costs == MEASURED:
        return len(os.sched_getaffinity(0))
    if not cpu and isinstance(costs, str) and costs not in NAMES:
        costs = recorded_costs(costs, FlatCosts())
    if not cpu and isinstance(costs, RecordedCosts) and costs.cpu is not None:
        return costs.cpu.cores
    return find_cpu(cpu).cores


def chosen_model(costs: CostModel | str, gpu: str, gpu_memory_fraction: float, cpu: str = "") -> CostModel:
    """Return a cost model as it is, or the one of a name."""
    return cost_model(costs, gpu, gpu_memory_fraction, cpu) if isinstance(costs, str) else costs


def costs_of_others(costs: CostModel | str, gpu: str, gpu_memory_fraction: float, cpu: str = "") -> CostModel:
    """Return the cost model for other graphs of a run: costs recorded of one graph say nothing of another."""
    model = chosen_model(costs, gpu, gpu_memory_fraction, cpu)
    return model.rest if isinstance(model, RecordedCosts) else model


def check_belongs(model: CostModel, nodes: Iterable[str]) -> None:
    """Raise `SimplaceError` for recorded costs of another graph than that with the nodes of these names."""
    if isinstance(model, RecordedCosts):
        model.check_belongs_to(nodes)


def drop_costs(model: CostModel, nodes: Collection[str]) -> CostModel:
    """Return the model without what was recorded of nodes that are other ops now; what makes these up is modelled."""
    return model.drop(nodes) if isinstance(model, RecordedCosts) else model


def find_outcomes(model: CostModel) -> Outcomes:
    """Return what loops and branches did where costs were recorded, nothing for other models."""
    return model.outcomes if isinstance(model, RecordedCosts) else Outcomes()
