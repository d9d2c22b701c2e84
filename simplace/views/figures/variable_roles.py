"""Whether a variable is the model's, or state of an optimizer or a metric: by what reads it."""

from __future__ import annotations

from functools import cached_property

from simplace.analysis.schedule import Schedule
from simplace.executor.kernel_memory import UPDATES
from simplace.views.figures.drawn_graph import DrawnGraph
from simplace.views.figures.step_parts import StepPart, find_parts


class VariableRoles:
    """Find the roles of the variables of a step when they are first asked for."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule

    def is_state(self, node: int) -> bool:
        """Return whether a variable, told by a node that uses it, is read by none but updates of the optimizer."""
        part = self._schedule.estimated.graph.nodes[node]
        if part.op.startswith(UPDATES) or part.origin < 0:
            return part.op.startswith(UPDATES)
        graph = self._schedule.placed.graph
        names = (graph.names[one] for one in (part.origin, *graph.walk_first_inputs(part.origin)))
        return next((bool(self._variables[name]) for name in names if name in self._variables), False)

    @cached_property
    def parts(self) -> dict[int, StepPart]:
        """Return the part of the step that each drawn node belongs to."""
        return find_parts(DrawnGraph.of(self._schedule.placement, 0))

    @cached_property
    def _variables(self) -> dict[str, str]:
        """Return for each variable what it belongs to, "" for a layer; by name, since a run has a graph of its own."""
        names = self._schedule.placement.graph.names
        return {names[node]: part.name for node, part in self.parts.items() if part.kind == "variables"}
