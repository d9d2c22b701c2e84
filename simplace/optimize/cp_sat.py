"""A placement problem as a constraint program for OR-Tools' CP-SAT, which proves bounds and finds placements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from simplace.errors import MissingExtraError
from simplace.optimize.grouped import GroupedProblem
from simplace.optimize.objectives import ObjectiveName
from simplace.optimize.problem import CPU

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

UNITS = 10**7  # of the value to beat, and of the bytes: whole numbers, rounded down, so that a bound stays a bound


def load_cp_sat() -> Any:
    """Import OR-Tools, or say how to get it."""
    try:
        from ortools.sat.python import cp_model
    except ImportError as missing:
        raise MissingExtraError(
            "proofs need OR-Tools: pip install 'simplace[prove]' (with protobuf 6, which TensorFlow has from 2.21 on)"
        ) from missing
    return cp_model


class ConstraintProgram:
    """The constraint program of a problem, to be solved once, mostly in a thread of its own."""

    def __init__(self, grouped: GroupedProblem, objective: ObjectiveName, start: Sequence[int], value: float) -> None:
        """Build the program; `start` is a placement of groups with that value, which is to be beaten."""
        assert objective != "makespan", "a list schedule is not a constraint program"
        self.cp_model = load_cp_sat()
        self.grouped = grouped
        self.scale = UNITS / value if value else 1.0
        self.model: cp_model.CpModel = self.cp_model.CpModel()
        self.solver: cp_model.CpSolver = self.cp_model.CpSolver()
        self.on = [[self._allow(group, device) for device in grouped.problem.devices] for group in range(len(grouped))]
        for choices in self.on:
            self.model.add_exactly_one(choices)
        self.value = self.model.new_int_var(0, UNITS, "value")
        self.loads = [self._load(device, start) for device in grouped.problem.devices]
        self._limit_bytes()
        if objective == "max_load":
            for load in self.loads:
                self.model.add(load <= self.value)
        else:
            self._order_blocks()
        self.model.minimize(self.value)
        for group, device in enumerate(start):
            for other in grouped.allowed[group]:
                self.model.add_hint(self.on[group][other], other == device)

    def run(
        self,
        seconds: float,
        workers: int,
        take_placement: Callable[[list[int]], None],
        take_bound: Callable[[float], None],
    ) -> None:
        """Search; hand over each better placement of groups and each better bound, from whichever thread finds it."""
        on, scale, allowed = self.on, self.scale, self.grouped.allowed

        class BetterSolution(self.cp_model.CpSolverSolutionCallback):  # type: ignore[misc, name-defined]
            def on_solution_callback(self) -> None:
                take_placement(
                    [
                        next(device for device in devices if self.value(on[group][device]))
                        for group, devices in enumerate(allowed)
                    ]
                )

        self.solver.parameters.max_time_in_seconds = seconds
        self.solver.parameters.num_workers = workers
        self.solver.best_bound_callback = lambda bound: take_bound(bound / scale)
        status = self.solver.solve(self.model, BetterSolution())
        if status in (self.cp_model.OPTIMAL, self.cp_model.FEASIBLE, self.cp_model.UNKNOWN):
            take_bound(self.solver.best_objective_bound / scale)

    def stop(self) -> None:
        """End the search soon, from any thread."""
        self.solver.stop_search()

    def _allow(self, group: int, device: int) -> Any:
        if device in self.grouped.allowed[group]:
            return self.model.new_bool_var(f"group {group} on {device}")
        return self.model.new_constant(0)

    def _units(self, time: float) -> int:
        return int(time * self.scale)

    def _load(self, device: int, start: Sequence[int]) -> Any:
        """Return the load of a device: a transfer is paid where the producer is and a reader is not, or the reverse."""
        load = sum(
            self._units(times[device]) * on[device]
            for times, on, allowed in zip(self.grouped.time, self.on, self.grouped.allowed, strict=True)
            if device in allowed
        )
        for net in self.grouped.nets if device != CPU else ():
            if not self._units(net.cost):
                continue
            pays = self.model.new_bool_var("")
            made = self.on[net.producer][device]
            for reader in net.readers:
                self.model.add_bool_or(made.negated(), self.on[reader][device], pays)
                self.model.add_bool_or(made, self.on[reader][device].negated(), pays)
            self.model.add_hint(
                pays, any((start[net.producer] == device) != (start[reader] == device) for reader in net.readers)
            )
            load += self._units(net.cost) * pays
        return load

    def _limit_bytes(self) -> None:
        limit = self.grouped.problem.accelerator_bytes
        for device in self.grouped.accelerators if limit else ():
            held = sum(
                int(size / limit * UNITS) * on[device]
                for size, on, allowed in zip(self.grouped.bytes, self.on, self.grouped.allowed, strict=True)
                if device in allowed
            )
            self.model.add(held <= UNITS)

    def _order_blocks(self) -> None:
        """A block starts when all that it reads is done, as does a node on the CPU; what a block holds ends with it."""
        model, problem = self.model, self.grouped.problem
        group_of = self.grouped.group_of_nodes()
        done = [model.new_int_var(0, UNITS, "") for _ in range(len(problem))]
        starts = [model.new_int_var(0, UNITS, "") for _ in problem.devices]
        for node, end in enumerate(done):
            model.add(end <= self.value)
            on = self.on[group_of[node]]
            if CPU in self.grouped.allowed[group_of[node]]:
                model.add(end >= self._units(problem.cpu_time[node])).only_enforce_if(on[CPU])
            for device in self.grouped.accelerators:
                model.add(end >= starts[device] + self.loads[device]).only_enforce_if(on[device])
        for producer, reader in sorted(
            {(output.producer, reader) for output in problem.outputs for reader in output.readers}
        ):
            made, read = self.on[group_of[producer]], self.on[group_of[reader]]
            model.add(done[reader] >= done[producer])
            if CPU in self.grouped.allowed[group_of[reader]]:
                model.add(done[reader] >= done[producer] + self._units(problem.cpu_time[reader])).only_enforce_if(
                    read[CPU]
                )
            for device in self.grouped.accelerators if group_of[producer] != group_of[reader] else ():
                model.add(starts[device] >= done[producer]).only_enforce_if(read[device], made[device].negated())
