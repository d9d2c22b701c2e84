"""Whether a variable is the model's, or state of an optimizer or a metric: by what reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from simplace.analysis.memory import Held
from simplace.analysis.memory_kinds import name_kept
from simplace.analysis.schedule import Schedule
from simplace.executor.kernel_memory import UPDATES
from simplace.importers.xla_attributes import call_without_jit, drop_jit
from simplace.pipeline import place_again
from simplace.placement.xla_compiler import Cluster, find_clusters
from simplace.views.figures.drawn_graph import DrawnGraph
from simplace.views.figures.step_parts import StepPart, find_parts


class VariableRoles:
    """Find the roles of the variables of a step when they are first asked for."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule

    def is_state(self, held: Held) -> bool:
        """Return whether a variable is read by none but updates of the optimizer."""
        estimated = self._schedule.estimated
        part, is_update = estimated.graph.nodes[held.node], estimated.graph.nodes[held.node].op.startswith(UPDATES)
        variables = sum(tensor.dtype == "resource" for tensor in estimated.list_inputs(held.node))
        if part.origin < 0 or variables > 1:  # of a variable and its slots, which have no other ops
            return is_update
        graph = self._schedule.placed.graph
        names = (graph.names[one] for one in (part.origin, *graph.walk_first_inputs(part.origin)))
        known = (name_kept(self._schedule, held), *names) if self._clusters else names
        return next((bool(self._variables[name]) for name in known if name in self._variables), is_update)

    @cached_property
    def parts(self) -> dict[int, StepPart]:
        """Return the part of the step that each drawn node belongs to."""
        return find_parts(DrawnGraph.of(self._schedule.placement, 0))

    @cached_property
    def _clusters(self) -> tuple[Cluster, ...]:
        return find_clusters(self._schedule.placement)

    @cached_property
    def _variables(self) -> dict[str, str]:
        """Return for each variable what it belongs to, "" for a layer; by name, since a run has a graph of its own.

        Of a program that XLA compiles in part, as if it did not: what reads a variable is in the calls that it
        compiles. There the name that the program gave a variable tells it, too.
        """
        old = self._schedule.placement
        if not self._clusters:
            return _divide_variables(old.graph.names, self.parts)
        one, is_whole = self._clusters[0], old.program.kind == "compiled"
        placement = place_again(
            old, call_without_jit(old.program, one.function, one.device) if is_whole else drop_jit(old.program)
        )
        parts = find_parts(DrawnGraph.of(placement, 0))
        known = [placement.notes(node).variable for node in range(len(placement.graph))]
        return _divide_variables(placement.graph.names, parts) | _divide_variables(known, parts)


def _divide_variables(names: Sequence[str], parts: Mapping[int, StepPart]) -> dict[str, str]:
    return {names[node]: part.name for node, part in parts.items() if part.kind == "variables" and names[node]}
