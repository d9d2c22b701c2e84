"""The objectives of a search for a placement, each with its evaluator and its bound."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from simplace.optimize.block_latency import compute_latency
from simplace.optimize.grouped import GroupedProblem
from simplace.optimize.max_load import compute_max_load
from simplace.optimize.placement_bounds import bound_load, bound_path, bound_shared_work
from simplace.optimize.problem import PlacementProblem
from simplace.optimize.step_makespan import compute_makespan

ObjectiveName = Literal["max_load", "latency", "makespan"]


@dataclass(frozen=True)
class Objective:
    """Record of an objective: the value of a placement, and a lower bound of all values."""

    evaluate: Callable[[PlacementProblem, Sequence[int]], float]
    bound: Callable[[GroupedProblem], float]


OBJECTIVES: dict[ObjectiveName, Objective] = {
    "max_load": Objective(compute_max_load, bound_load),
    "latency": Objective(compute_latency, bound_path),
    "makespan": Objective(
        compute_makespan,
        lambda grouped: max(bound_path(grouped), bound_shared_work(grouped, grouped.problem.cpu_cores)),
    ),
}
