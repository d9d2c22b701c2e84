"""Placements of least load, latency or makespan: a problem in, the best placement found and a bound out.

    problem = PlacementProblem(
        accelerators=2, accelerator_bytes=16e9, accelerator_time=..., cpu_time=..., node_bytes=...,
        outputs=(Output(producer=0, readers=(1, 2), cost=0.01), ...), group_of=...,
    )
    placed = solve(problem, "makespan", seconds=10, report=lambda best: print(best.value, best.bound))
    placed.device_of, placed.value, placed.bound, placed.method

`search_placements` is the same as a generator that can be left at any time; `judge` values candidates by any function,
as by a simulated step. Knows nothing of TensorFlow.
"""

from simplace.optimize.problem import CPU, Output, PlacementProblem, Solution
from simplace.optimize.search import search_placements
from simplace.optimize.solve import solve

__all__ = ["CPU", "Output", "PlacementProblem", "Solution", "search_placements", "solve"]
