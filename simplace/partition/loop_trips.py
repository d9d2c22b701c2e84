"""How often the body of a loop runs, found by running what its condition depends on, as far as that is integers.

A loop variable that is counted, up or down, by any step, and limits that are constants, sizes of tensors, what an
earlier loop has counted to, and arithmetic on these, are followed. So are the integers that the first call had as its
arguments, of which another call may have others. A loop's gradient runs as often as its loop has
counted, or takes from a list what each round of it has put there (tensorflow/python/ops/while_v2.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from itertools import islice
from typing import Any, Literal, NamedTuple

from simplace.graph.constant_numbers import read_numbers
from simplace.graph.integer_ops import INTEGER_OPS, WHOLE, Value, multiply
from simplace.graph.integer_rounds import IntegerStep, Rounds, order_steps
from simplace.graph.node_def import TensorInfo
from simplace.graph.op_kinds import (
    CONTROL_FLOW,
    ENTERS,
    IDENTITIES,
    NEXT_ITERATIONS,
    SWITCHES,
    is_constant,
    is_exit,
    is_loop_cond,
    is_merge,
    is_next_iteration,
    is_switch,
)
from simplace.partition.shapes import TensorSizes
from simplace.program.placed_graph import PlacedGraph

Sureness = Literal["exact", "as called", "at most", "at most as called", "assumed"]
Ref = tuple[int, int]  # a node of a placed graph, and which of its outputs

_ORDER: Sequence[Sureness] = ("exact", "as called", "at most", "at most as called", "assumed")
_KNOWN: Sequence[Sureness] = ("exact", "as called")
_MOST_LISTED = 10_000  # rounds of which each is told
_PUSH, _POP, _FROM = "TensorListPushBack", "TensorListPopBack", "TensorListFromTensor"
_OF_SHAPES = frozenset(("Shape", "ShapeN", "Size", "Rank", _FROM))
_RENAMES = IDENTITIES | SWITCHES
_KEEPING = IDENTITIES | NEXT_ITERATIONS | SWITCHES  # what leads a loop variable that no round changes back to its Merge


class Trips(NamedTuple):
    """Record of how often a loop's body runs: "at most" so often where its condition also asks what is not known.

    "as called" is what follows from arguments of the first call.
    """

    trips: int
    sureness: Sureness


class Outcome(NamedTuple):
    """Record of what a predicate is, once or in each round of its loop: () where that is not known."""

    by_round: tuple[int, ...]
    sureness: Sureness


_UNKNOWN = Outcome((), "assumed")


class LoopTrips:
    """Read the trips of a placed graph's loops, and integers that no round of a loop changes.

    `decide` is asked, by LoopCond, how often a loop runs whose results another one depends on: the user may know.
    """

    def __init__(self, placed: PlacedGraph, decide: Callable[[int], Trips]) -> None:
        self._placed = placed
        self._graph = placed.graph
        self._sizes = TensorSizes(placed)
        self._decide = decide
        self._known: dict[Ref, tuple[Value, Sureness]] = {}

    def count(self, loop_cond: int) -> Trips | None:
        """Return how often a loop runs, None where its condition compares nothing that is known.

        It is as sure as what it depends on.
        """
        joined = self._list_joined(self._graph.list_sources(loop_cond)[0])
        rounds, sureness = self._trace(joined)
        counted = rounds.count_rounds(joined)
        if counted is None:
            return None
        trips, is_known = counted
        return Trips(trips, sureness if is_known else _weaken(sureness, "at most"))

    def read(self, node: int, slot: int = 0) -> tuple[Value, Sureness]:
        """Return what an output is, and how sure that is; None where that is not known, or changes between rounds."""
        ref = node, slot
        if ref not in self._known:
            self._known[ref] = None, "exact"  # a graph may be a circle
            rounds, sureness = self._trace([ref], is_in_loop=False)
            self._known[ref] = rounds.run_once()[ref], sureness
        return self._known[ref]

    def list_predicates(self, switch: int) -> Outcome:
        """List what the predicate of a Switch is.

        What the gradient's loop takes from a list is there the other way round.
        """
        node, slot = self._resolve(self._graph.list_sources(switch)[1], _RENAMES)
        value, sureness = self.read(node, slot)
        if isinstance(value, int):
            return Outcome((int(value),), sureness) if sureness in _KNOWN else _UNKNOWN
        if self._graph.ops[node] != _POP:
            return self._list_rounds((node, slot))
        pushed = self._find_pushed(node)
        if pushed is None:
            return _UNKNOWN
        by_round, sureness = self._list_rounds(pushed)
        return Outcome(by_round[::-1], sureness)

    def _list_rounds(self, ref: Ref) -> Outcome:
        """List what an output of a loop's body is in each round, if these are not too many."""
        rounds, sureness = self._trace([ref])
        loop_cond = self._find_loop_cond(next(iter(rounds.after), None))
        if loop_cond is None or sureness not in _KNOWN:
            return _UNKNOWN
        trips = self._decide(loop_cond).trips
        if trips > _MOST_LISTED:
            return _UNKNOWN
        known: list[int] = []
        for values in islice(rounds.run(), trips):
            value = values[ref]
            if not isinstance(value, int):
                return _UNKNOWN
            known.append(int(value))
        return Outcome(tuple(known), sureness)

    def _find_loop_cond(self, variable: Ref | None) -> int | None:
        """Return the LoopCond of the loop that a variable belongs to."""
        graph = self._graph
        after = [graph.edge_dst[edge] for edge in graph.out_edges[variable[0]]] if variable is not None else []
        for node in after:
            if is_switch(graph.ops[node]):
                decider = self._resolve(self._graph.list_sources(node)[1], IDENTITIES)[0]
                if is_loop_cond(graph.ops[decider]):
                    return decider
        return None

    def _trace(self, targets: Sequence[Ref], *, is_in_loop: bool = True) -> tuple[Rounds[Ref], Sureness]:
        """Find what targets are computed from, each round, and how sure that is."""
        known: dict[Ref, Value] = {}
        start: dict[Ref, Value] = {}
        after: dict[Ref, Ref] = {}
        surenesses: list[Sureness] = ["exact"]

        def read_leaf(ref: Ref) -> Sequence[Ref]:
            if not (is_in_loop and self._is_variable(ref)):
                known[ref], sureness = self._read_leaf(ref)
                surenesses.append(sureness)
                return ()
            before, after[ref] = self._split_variable(ref[0])
            start[ref], sureness = self.read(*before)
            surenesses.append(sureness)
            return (after[ref],)

        steps = order_steps(targets, self._find_step, read_leaf)
        return Rounds(steps, known, start, after), reduce(_weaken, surenesses)

    def _find_step(self, ref: Ref) -> IntegerStep[Ref] | None:
        """Return how an output is computed from others within a round, None for what is not."""
        node, slot = ref
        op = self._graph.ops[node]
        if op in ENTERS or self._graph.out_types[node][slot] not in WHOLE or (op == _POP and slot == 1):
            return None
        if op in INTEGER_OPS:
            return IntegerStep(ref, INTEGER_OPS[op], self._graph.list_sources(node), self._graph.attrs[node], slot)
        if is_merge(op) and slot == 0 and not self._is_variable(ref) and (branches := self._list_branches(node)):
            return IntegerStep(ref, _choose, branches, {})
        return None

    def _read_leaf(self, ref: Ref) -> tuple[Value, Sureness]:
        """Return what is known of an output that a round does not compute from integers."""
        node, slot = ref
        op, sources = self._graph.ops[node], self._graph.list_sources(node)
        value: Value = None
        if is_constant(op):
            constant = self._graph.attrs[node].get("value")
            value = read_numbers(constant) if isinstance(constant, TensorInfo) else None
        elif (given := self._placed.given_value(node)) is not None:
            return given, "as called"
        elif op in _OF_SHAPES and slot < len(sources):
            value = self._measure(op, sources[slot])
        elif op in ENTERS and sources:
            return self.read(*sources[0])
        elif is_exit(op) and sources:
            return self._read_exit(sources[0][0])
        elif op == _POP and slot == 1 and (pushed := self._find_pushed(node)):
            return self.read(*pushed)
        elif self._is_variable(ref):
            before, after = self._split_variable(node)
            if self._resolve(after, _KEEPING)[0] == node:
                return self.read(*before)
        return value, "exact"

    def _measure(self, op: str, ref: Ref) -> Value:
        """Return what an op tells of a tensor's shape."""
        shape = self._sizes.shape(*ref)
        if shape is None:
            return None
        sizes = tuple(None if size < 0 else size for size in shape)
        if op == "Rank":
            return len(sizes)
        if op == _FROM:
            return sizes[0] if sizes else None
        return multiply(sizes) if op == "Size" else sizes

    def _read_exit(self, switch: int) -> tuple[Value, Sureness]:
        """Return what a loop variable is at its end, by the Switch that it leaves through."""
        sources = self._graph.list_sources(switch)
        if not is_switch(self._graph.ops[switch]) or not self._is_variable(sources[0]):
            return None, "exact"
        condition, variable = self._resolve(sources[1], IDENTITIES)[0], sources[0]
        if not is_loop_cond(self._graph.ops[condition]):
            return None, "exact"
        rounds, sureness = self._trace([variable])
        if rounds.start[variable] is None:
            return None, "exact"
        trips = self._decide(condition)
        return rounds.find_values(trips.trips)[variable], _weaken(sureness, trips.sureness)

    def _find_pushed(self, pop: int) -> Ref | None:
        """Return the value that a loop has put into the list from which another one takes it."""
        found, seen = [*self._graph.list_sources(pop)[:1]], {pop}
        for node, _ in found:  # grows meanwhile
            if node in seen:
                continue
            seen.add(node)
            op = self._graph.ops[node]
            if op == _PUSH:
                return self._graph.list_sources(node)[1]
            if op in CONTROL_FLOW or op in IDENTITIES:
                found += self._graph.list_sources(node)
        return None

    def _list_joined(self, condition: Ref) -> list[Ref]:
        """List the tensors that all have to be true for another round.

        `a and b` of Python is a branch (tensorflow/python/autograph/operators/logical.py): b if a, and else a.
        """
        found: list[Ref] = []
        waiting, seen = [condition], set[Ref]()
        for ref in waiting:  # grows meanwhile
            node, slot = one = self._resolve(ref, _RENAMES)
            if one in seen:
                continue
            seen.add(one)
            branches = self._list_branches(node) if is_merge(self._graph.ops[node]) and slot == 0 else []
            if self._graph.ops[node] == "LogicalAnd":
                waiting += self._graph.list_sources(node)
            elif len(branches) == 3 and self._is_false(branches[1], branches[0]):
                waiting += [branches[0], branches[2]]
            else:
                found.append(one)
        return found

    def _is_false(self, ref: Ref, predicate: Ref) -> bool:
        """Return whether the else branch returns its own predicate, or False."""
        node, slot = self._resolve(ref, _RENAMES)
        if is_constant(self._graph.ops[node]):
            return self._read_leaf((node, slot))[0] == 0
        return (node, slot) == self._resolve(predicate, _RENAMES)

    def _list_branches(self, merge: int) -> list[Ref]:
        """List the predicate of the branches that a Merge ends, and their results by its value, [] if one is not found.

        Which branch an input belongs to, the output tells of the Switch through which it got what it is made of.
        """
        ends = self._graph.list_sources(merge)
        switched = [self._find_switched(end) for end in ends]
        known = [one for one in switched if one is not None]
        if not known or len({self._graph.list_sources(switch)[1] for switch, _ in known}) > 1:
            return []
        taken = [None if one is None else one[1] for one in switched]
        left = [i for i in range(len(ends)) if i not in taken]
        if len(left) == taken.count(None) == 1:  # what one branch returns may be made of nothing
            taken[taken.index(None)] = left[0]
        if sorted(one for one in taken if one is not None) != list(range(len(ends))):
            return []
        return [self._graph.list_sources(known[0][0])[1], *(ends[taken.index(i)] for i in range(len(ends)))]

    def _find_switched(self, ref: Ref) -> Ref | None:
        """Return the output of a branch's Switch that is nearest behind what the branch returns, None for none."""
        waiting, seen = [ref], set[int]()
        for one in waiting:  # grows meanwhile
            op = self._graph.ops[one[0]]
            if is_switch(op):
                return one
            if one[0] not in seen and not is_merge(op) and not is_exit(op):
                seen.add(one[0])
                waiting += self._graph.list_sources(one[0])
        return None

    def _is_variable(self, ref: Ref) -> bool:
        """Return whether an output is a loop variable, as a round begins with it."""
        node, slot = ref
        ops = self._graph.ops
        return (
            slot == 0
            and is_merge(ops[node])
            and any(is_next_iteration(ops[one]) for one, _ in self._graph.list_sources(node))
        )

    def _split_variable(self, merge: int) -> tuple[Ref, Ref]:
        """Return where a loop variable comes from, and where its next value does."""
        sources = self._graph.list_sources(merge)
        after = next(ref for ref in sources if is_next_iteration(self._graph.ops[ref[0]]))
        return next((ref for ref in sources if ref != after), after), after

    def _resolve(self, ref: Ref, ops: frozenset[str]) -> Ref:
        """Return what an output is another name of, through such ops."""
        seen: set[Ref] = set()
        while self._graph.ops[ref[0]] in ops and ref not in seen and (sources := self._graph.list_sources(ref[0])):
            seen.add(ref)
            ref = sources[0]
        return ref


def _choose(inputs: Sequence[Value], attrs: Mapping[str, Any], slot: int) -> Value:
    """Return the result of the branch that is taken; the predicate is the first input."""
    chosen, *results = inputs
    if isinstance(chosen, int) and 0 <= chosen < len(results):
        return results[chosen]
    return results[0] if all(result == results[0] for result in results) else None


def _weaken(one: Sureness, other: Sureness) -> Sureness:
    """Return how sure that is which depends on both."""
    if {one, other} == {"as called", "at most"}:
        return "at most as called"
    return max(one, other, key=_ORDER.index)
