"""Search which statements should compute on which GPU: solve a small model of them, then improve by estimates."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import inf

from simplace.optimize import Output, PlacementProblem, search_placements
from simplace.suggestions.changes import Change, ColocatedGradients, LinesOverGpus, join_changes
from simplace.suggestions.evidence import Evidence
from simplace.suggestions.gradient_changes import find_gradient_calls, pin_gradients
from simplace.suggestions.scope_changes import find_statements, put_under
from simplace.suggestions.source_file import SourceFile

Estimate = Callable[[Mapping[str, str]], int | None]  # of the nanoseconds of a step with pins
_STATEMENTS = 24
_ESTIMATES = 40
_ROUNDS = 30  # of the search in the model, milliseconds each
_COPY = 20_000.0  # nanoseconds that a tensor between two GPUs costs at first sight; the estimates know better


@dataclass(frozen=True)
class _Unit:
    """Record of a statement: its nodes, how long they take on a GPU, the units whose results they read."""

    source: SourceFile
    statement: ast.stmt
    nodes: tuple[int, ...]
    time: int
    reads: frozenset[int]


def find_splits(evidence: Evidence, estimate: Estimate) -> Iterator[Change]:
    """Find the best way that the search knows to spread the program's statements over its GPUs, if one gains.

    Where a tape computes gradients, they are to run beside the ops that they are of.
    """
    if len(evidence.gpus) < 2 or not (units := _list_units(evidence)):
        return
    gradients = next(find_gradient_calls(evidence), None)
    search = _Search(evidence, units, gradients, estimate)
    best = search.run()
    if best is not None:
        yield best


class _Search:
    def __init__(
        self,
        evidence: Evidence,
        units: Sequence[_Unit],
        gradients: tuple[ColocatedGradients, list[int]] | None,
        estimate: Estimate,
    ) -> None:
        self.evidence = evidence
        self.units = units
        self.gradients = gradients
        self.estimate = estimate
        self.known: dict[tuple[int, ...], int | None] = {}

    def run(self) -> Change | None:
        """Return the change of the best assignment that was found, None if that is the present one."""
        stay = (0,) * len(self.units)
        start = self.evidence.schedule.trace.makespan
        starts = [one for one in dict.fromkeys(self._propose()) if one != stay]
        best = min(starts, key=self._time, default=stay)
        best = self._improve(best)
        if best == stay or self._time(best) >= start:
            return None
        return self._change(best)

    def _improve(self, best: tuple[int, ...]) -> tuple[int, ...]:
        """Move one unit at a time, the longest first, as long as something gains and estimates are left."""
        order = sorted(range(len(self.units)), key=lambda i: -self.units[i].time)
        gained = True
        while gained:
            gained = False
            for i in order:
                for gpu in range(len(self.evidence.gpus)):
                    moved = (*best[:i], gpu, *best[i + 1 :])
                    if len(self.known) >= _ESTIMATES and moved not in self.known:
                        return best
                    if self._time(moved) < self._time(best):
                        best, gained = moved, True
        return best

    def _propose(self) -> Iterator[tuple[int, ...]]:
        """Yield assignments that are good if only the statements' own times and copies between them counted."""
        problem = PlacementProblem(
            accelerators=len(self.evidence.gpus),
            accelerator_bytes=inf,
            accelerator_time=tuple(float(unit.time) for unit in self.units),
            cpu_time=(inf,) * len(self.units),
            node_bytes=(0.0,) * len(self.units),
            outputs=tuple(Output(i, readers, _COPY) for i, readers in enumerate(self._list_readers()) if readers),
            group_of=tuple(range(len(self.units))),
        )
        for solution in islice(search_placements(problem, "makespan"), _ROUNDS):
            yield tuple(device - 1 for device in solution.device_of)

    def _list_readers(self) -> list[tuple[int, ...]]:
        return [tuple(j for j, unit in enumerate(self.units) if i in unit.reads) for i in range(len(self.units))]

    def _time(self, chosen: tuple[int, ...]) -> float:
        if chosen not in self.known:
            self.known[chosen] = self.estimate(self._pins(chosen))
        found = self.known[chosen]
        return float("inf") if found is None else found

    def _pins(self, chosen: tuple[int, ...]) -> dict[str, str]:
        pins: dict[str, str] = {}
        for unit, gpu in zip(self.units, chosen, strict=True):
            if gpu:
                pins |= self.evidence.pins(unit.nodes, self.evidence.gpus[gpu])
        if self.gradients is not None:
            pins |= pin_gradients(self.evidence, self.gradients[1], pins)
        return pins

    def _change(self, chosen: tuple[int, ...]) -> Change:
        gpus = self.evidence.gpus
        moved = [(unit, gpus[gpu]) for unit, gpu in zip(self.units, chosen, strict=True) if gpu]
        scopes = [put_under(unit.source, unit.statement, gpu) for unit, gpu in moved]
        edits = tuple(edit for scope in scopes for edit in scope.edits)
        devices = tuple((scope.at, scope.device) for scope in scopes)
        split = LinesOverGpus(edits=edits, at=devices[0][0], pins=self._pins(chosen), devices=devices)
        return split if self.gradients is None else join_changes(split, self.gradients[0])


def _list_units(evidence: Evidence) -> list[_Unit]:
    """List the longest statements of functions in the order of their lines, without those that make gradients."""
    of_gradients = {node for _, nodes in find_gradient_calls(evidence) for node in nodes}
    found = [one for one in find_statements(evidence) if not of_gradients.intersection(one[2])][:_STATEMENTS]
    found.sort(key=lambda one: (one[0].name, one[1].lineno))
    unit_of = {node: i for i, (_, _, nodes) in enumerate(found) for node in nodes}
    units = []
    for i, (source, statement, nodes) in enumerate(found):
        reads = frozenset(_units_before(evidence, nodes, unit_of)) - {i}
        units.append(_Unit(source, statement, tuple(nodes), evidence.time_of(nodes), reads))
    return units


def _units_before(evidence: Evidence, nodes: Sequence[int], unit_of: Mapping[int, int]) -> Iterator[int]:
    graph = evidence.placed.placement.graph
    for node in nodes:
        for edge in graph.in_edges[node]:
            if graph.edge_src[edge] in unit_of:
                yield unit_of[graph.edge_src[edge]]
