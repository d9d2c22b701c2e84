"""A proof beside a search: CP-SAT in a thread, whose placements and bounds are taken over."""

from __future__ import annotations

import os
from threading import Lock, Thread

from simplace.optimize.cp_sat import ConstraintProgram
from simplace.optimize.grouped import group_problem
from simplace.optimize.objectives import OBJECTIVES, ObjectiveName
from simplace.optimize.problem import PlacementProblem, Solution


class Proof:
    """CP-SAT at work on a problem; it computes outside of Python's lock, on as many threads as there are cores."""

    def __init__(self, problem: PlacementProblem, objective: ObjectiveName, best: Solution, seconds: float) -> None:
        """Start with the best placement so far."""
        self.problem, self.objective = problem, objective
        self.grouped = group_problem(problem)
        start = [best.device_of[nodes[0]] for nodes in self.grouped.members]
        self.program = ConstraintProgram(self.grouped, objective, start, best.value)
        self.lock = Lock()
        self.best, self.bound = best, best.bound
        arguments = (seconds, max(2, os.cpu_count() or 1), self._take_placement, self._take_bound)
        self.thread = Thread(target=self.program.run, args=arguments, daemon=True)
        self.thread.start()

    def improve(self, best: Solution) -> Solution:
        """Return the better of a placement and of what was found here, with the better bound."""
        with self.lock:
            better = self.best if self.best.value < best.value else best
            bound = max(best.bound, self.bound)
        return Solution(better.device_of, better.value, bound, better.method)

    def stop(self) -> None:
        """End the thread."""
        self.program.stop()
        self.thread.join()

    def _take_placement(self, device_of_group: list[int]) -> None:
        device_of = self.grouped.spread(device_of_group)
        value = OBJECTIVES[self.objective].evaluate(self.problem, device_of)
        with self.lock:
            if value < self.best.value and self.problem.keeps_limits(device_of):
                self.best = Solution(device_of, value, self.bound, "CP-SAT")

    def _take_bound(self, bound: float) -> None:
        with self.lock:
            self.bound = max(self.bound, bound)
