"""Find which statements of the program should compute on which GPU."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from simplace.suggestions.changes import Change, ColocatedGradients, LinesOverGpus, join_changes
from simplace.suggestions.estimated_step import Estimate
from simplace.suggestions.evidence import Evidence
from simplace.suggestions.gradient_changes import find_gradient_calls, pin_gradients
from simplace.suggestions.scope_changes import find_read, find_statements, move_variables, put_under
from simplace.suggestions.source_file import SourceFile
from simplace.suggestions.split_search import Assignment, Unit, search_split

_STATEMENTS = 24


def find_line_splits(evidence: Evidence, estimate: Callable[[Mapping[str, str]], Estimate | None]) -> Iterator[Change]:
    """Find the best way that the search knows to spread the program's statements over its GPUs, if one gains.

    Where a tape computes gradients, they are to run beside the ops that they are of. Where memory is short, variables
    go with the statement that alone reads them. `estimate` judges a step with pins, None where TensorFlow would refuse
    them.
    """
    if len(evidence.gpus) < 2 or not (statements := _list_statements(evidence)):
        return
    split = _LineSplit(evidence, statements, next(find_gradient_calls(evidence), None))
    units = [one.unit for one in statements]
    room = evidence.find_room(node for unit in units for node in unit.nodes)
    best = search_split(
        units, len(evidence.gpus), evidence.estimate, lambda chosen: estimate(split.pin(chosen)), room
    )  # fmt: skip
    if best is not None:
        yield split.write(best)


@dataclass(frozen=True)
class _Statement:
    source: SourceFile
    statement: ast.stmt
    unit: Unit
    variables: tuple[int, ...] = ()  # the nodes that hold those that move with it


@dataclass(frozen=True)
class _LineSplit:
    """The statements, and the call that computes gradients of them with its nodes."""

    evidence: Evidence
    statements: Sequence[_Statement]
    gradients: tuple[ColocatedGradients, list[int]] | None

    def pin(self, chosen: Assignment) -> dict[str, str]:
        """Return the pins of an assignment."""
        pins, names = dict[str, str](), self.evidence.placed.placement.graph.names
        for one, gpu in zip(self.statements, chosen, strict=True):
            if gpu:
                device = self.evidence.gpus[gpu]
                pins |= self.evidence.pins(one.unit.nodes, device) | {names[node]: device for node in one.variables}
        if self.gradients is not None:
            pins |= pin_gradients(self.evidence, self.gradients[1], pins)
        return pins

    def write(self, chosen: Assignment) -> Change:
        """Return the change that makes an assignment."""
        gpus = self.evidence.gpus
        moved = [(one, gpus[gpu]) for one, gpu in zip(self.statements, chosen, strict=True) if gpu]
        scopes = [put_under(one.source, one.statement, gpu) for one, gpu in moved]
        edits = tuple(edit for scope in scopes for edit in scope.edits)
        devices = tuple((scope.at, scope.device) for scope in scopes)
        split = LinesOverGpus(edits=edits, at=devices[0][0], pins=self.pin(chosen), devices=devices)
        moves = [move for one, gpu in moved for move in move_variables(self.evidence, one.variables, gpu)]
        gradients = [] if self.gradients is None else [self.gradients[0]]
        return join_changes(split, *moves, *gradients) if moves or gradients else split


def _list_statements(evidence: Evidence) -> list[_Statement]:
    """List the longest statements of functions in the order of their lines, without those that make gradients."""
    of_gradients = {node for _, nodes in find_gradient_calls(evidence) for node in nodes}
    found = [one for one in find_statements(evidence) if not of_gradients.intersection(one[2])][:_STATEMENTS]
    found.sort(key=lambda one: (one[0].name, one[1].lineno))
    unit_of = {node: i for i, (_, _, nodes) in enumerate(found) for node in nodes}
    own = [()] * len(found) if evidence.memory.fits else _list_own_variables(evidence, [one[2] for one in found])
    statements = []
    for i, (source, statement, nodes) in enumerate(found):
        reads = frozenset(_units_before(evidence, nodes, unit_of)) - {i}
        unit = Unit(tuple(nodes), evidence.time_of(nodes), reads, evidence.size_of([*nodes, *own[i]]))
        statements.append(_Statement(source, statement, unit, own[i]))
    return statements


def _list_own_variables(evidence: Evidence, units: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    """List the variables that each unit alone reads, where it does so of all that a line makes."""
    made_at = {node: variable.made_at for node, variable in evidence.variables.items()}
    read = [find_read(evidence, nodes) for nodes in units]
    readers = Counter(line for each in read for line in {made_at[node] for node in each})
    return [tuple(node for node in each if readers[made_at[node]] == 1) for each in read]


def _units_before(evidence: Evidence, nodes: Sequence[int], unit_of: Mapping[int, int]) -> Iterator[int]:
    graph = evidence.placed.placement.graph
    for node in nodes:
        for edge in graph.in_edges[node]:
            if graph.edge_src[edge] in unit_of:
                yield unit_of[graph.edge_src[edge]]
