"""Outcomes of loops and branches: given by the user, observed in a step that ran, read from the graph, or assumed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Literal

from simplace.costs.outcomes import DEFAULT_TRIPS, How, Loop, Outcomes
from simplace.errors import SimplaceError, join_choices
from simplace.graph.builder import CONTROL
from simplace.graph.control_flow_info import name_frame
from simplace.graph.op_kinds import (
    CONTROL_FLOW,
    ENTERS,
    EXITS,
    IDENTITIES,
    MERGES,
    NEXT_ITERATIONS,
    is_constant,
    is_exit,
    is_loop_cond,
    is_switch,
)
from simplace.partition.constant_folding import read_integer
from simplace.partition.graph_partition import PartitionedGraph

LIVE, DEAD = -1, -2  # what a finished node puts out: everything, nothing; k >= 0: output k alone
DEFAULT_PARALLEL = 10  # parallel_iterations of tf.while_loop

Role = Literal["enter", "exit", "next"]

_ROLES: Mapping[str, Role] = {
    **dict.fromkeys(ENTERS, "enter"), **dict.fromkeys(EXITS, "exit"), **dict.fromkeys(NEXT_ITERATIONS, "next"),
}  # fmt: skip
_PUSH, _POP = "TensorListPushBack", "TensorListPopBack"
_COMPARISONS = frozenset({"Less", "LessEqual"})
_ADDITIONS = frozenset({"Add", "AddV2"})
_RENAMES = IDENTITIES | ENTERS
_PASSES_ON = _RENAMES | MERGES | {"StopGradient", "PreventGradient"}


@dataclass(frozen=True, slots=True)
class Branch:
    """Record of which output of the switches on one predicate is taken: 1 is "then" for an If.

    `by_run` has it for each time that it is decided, where that was observed.
    """

    predicate: str
    taken: int
    how: How
    by_run: tuple[int, ...] = ()

    def taken_at(self, run: int) -> int:
        """Return the output that is taken at the nth time, from 0.

        >>> Branch("p", 0, "observed", (1, 0, 0)).taken_at(0), Branch("p", 1, "given").taken_at(7)
        (1, 1)
        """
        return self.by_run[min(run, len(self.by_run) - 1)] if self.by_run else self.taken


@dataclass(frozen=True)
class ControlFlow:
    """Record of the loops and branches of a graph with their outcomes.

    `role` has for each node what it does with frames, `frames` holds (name, enters, parallel iterations), which
    `frame_of_enter` points to.
    """

    role: tuple[Role | None, ...]
    is_constant: Mapping[int, bool]
    frame_of_enter: Mapping[int, int]
    frames: tuple[tuple[str, int, int], ...]
    loops: tuple[Loop, ...]
    branches: tuple[Branch, ...]
    loop_of_switch: Mapping[int, int] = field(default_factory=dict)
    branch_of_switch: Mapping[int, int] = field(default_factory=dict)


def control_flow(
    graph: PartitionedGraph,
    *,
    trips: Mapping[str, int] | None = None,
    branches: Mapping[str, int] | None = None,
    compiled: Sequence[Loop] = (),
    observed: Outcomes | None = None,
) -> ControlFlow:
    """Decide the outcomes.

    `trips` maps the name of a loop to how often its body runs, `branches` the name of a predicate's node to the
    output taken (for an If: 1 then, 0 else). What is not given is as `observed` in a step that ran; else read off the
    condition where it compares a counter that starts at a constant with a constant (a step of 1 is assumed), else
    taken as 10 trips and "then".
    `compiled` are the loops inside of clusters: their names may be in `trips` too.
    Raises `SimplaceError` for names that the graph does not have.
    """
    reader = _ControlFlowReader(graph, dict(trips or {}), dict(branches or {}), observed or Outcomes())
    found = reader.read()
    _check_names("loop", reader.trips, [loop.name for loop in (*found.loops, *compiled)])
    _check_names("predicate", reader.choices, [branch.predicate for branch in found.branches])
    return found


def _check_names(what: str, given: Mapping[str, int], known: list[str]) -> None:
    for name, value in given.items():
        if name not in known:
            there = f"there are: {join_choices(known)}" if known else "it has none"
            raise SimplaceError(f"no {what} is called {name!r} in this graph; {there}")
        if value < 0:
            raise SimplaceError(f"{value} for the {what} {name!r} is not possible; give 0 or a positive integer")


class _ControlFlowReader:
    def __init__(
        self, graph: PartitionedGraph, trips: dict[str, int], branches: dict[str, int], observed: Outcomes
    ) -> None:
        self.graph = graph
        self.trips = trips
        self.choices = branches
        self.observed = observed
        self.send_of = {receive: send for send, receive in graph.receiver.items()}
        self.is_constant: dict[int, bool] = {}
        self.frame_of_enter: dict[int, int] = {}
        self.frames: list[tuple[str, int, int]] = []
        self.loops: list[Loop] = []
        self.branches: list[Branch] = []
        self.counted: set[int] = set()
        self.is_assumed = False  # what was read since depends on a loop of which nothing tells how often it runs

    def read(self) -> ControlFlow:
        role = tuple(_ROLES.get(node.op) for node in self.graph.nodes)
        self._read_frames()
        loop_of: dict[int, int] = {}
        branch_of: dict[int, int] = {}
        loop_numbers: dict[int, int] = {}
        branch_numbers: dict[int, int] = {}
        for i, node in enumerate(self.graph.nodes):
            if not is_switch(node.op):
                continue
            decider = self._decider(i)
            if is_loop_cond(self.graph.nodes[decider].op):
                if decider not in loop_numbers:
                    loop_numbers[decider] = len(self.loops)
                    self.loops.append(self._loop(decider, i))
                loop_of[i] = loop_numbers[decider]
                continue
            if decider not in branch_numbers:
                branch_numbers[decider] = len(self.branches)
                self.branches.append(self._branch(decider, node.op == "_SwitchN"))
            branch_of[i] = branch_numbers[decider]
        return ControlFlow(
            role, self.is_constant, self.frame_of_enter, tuple(self.frames), tuple(self.loops), tuple(self.branches),
            loop_of, branch_of,
        )  # fmt: skip

    def _read_frames(self) -> None:
        groups: dict[str, int] = {}
        for i, node in enumerate(self.graph.nodes):
            if _ROLES.get(node.op) != "enter":
                continue
            attrs = self.graph.attrs_of(i)
            text = name_frame(attrs)
            group = groups.setdefault(text, len(groups))
            if group == len(self.frames):
                parallel = attrs.get("parallel_iterations", DEFAULT_PARALLEL)
                self.frames.append((text, 0, max(1, parallel) if isinstance(parallel, int) else DEFAULT_PARALLEL))
            self.frames[group] = (text, self.frames[group][1] + 1, self.frames[group][2])
            self.frame_of_enter[i] = group
            self.is_constant[i] = bool(attrs.get("is_constant", False))

    def _input(self, i: int, slot: int) -> int:
        """Return the node behind an input; a receive stands for what its send sends. -1: no such input."""
        for edge in self.graph.ins[i]:
            if edge.dst_slot == slot:
                return self._behind(edge.src)
        return -1

    def _behind(self, i: int) -> int:
        while i in self.send_of:
            i = self.graph.ins[self.send_of[i]][0].src
        return i

    def _decider(self, switch: int) -> int:
        """Follow a predicate back to the node that computes it, or to the LoopCond."""
        at = self._input(switch, 1)
        while self.graph.nodes[at].op in _RENAMES and self._input(at, 0) >= 0:
            at = self._input(at, 0)
        return at

    def _branch(self, decider: int, is_case: bool) -> Branch:
        name = self.graph.nodes[decider].name
        if name in self.choices:
            return Branch(name, self.choices[name], "given")
        if by_run := self.observed.branches.get(name):
            return Branch(name, max(by_run, key=by_run.count), "observed", by_run)
        value = self._constant(decider)
        if value is not None:
            return Branch(name, value, "read")
        return Branch(name, 0 if is_case else 1, "assumed")

    def _loop(self, condition: int, switch: int) -> Loop:
        """Return the loop with a condition, of which one variable goes through a Switch."""
        name = self._frame_name(switch) or self.graph.nodes[condition].name
        if name in self.trips:
            return Loop(name, self.trips[name], "given")
        if by_entry := self.observed.trips.get(name):
            return Loop(name, round(fmean(by_entry)), "observed", by_entry)
        before, self.is_assumed = self.is_assumed, False
        bounds = self._bounds(condition)
        how: How = "assumed" if self.is_assumed or not bounds else "read"
        self.is_assumed = before or how == "assumed"
        return Loop(name, min(bounds, default=DEFAULT_TRIPS), how)

    def _frame_name(self, switch: int) -> str:
        """Return the frame of the Enter behind the Merge of a loop's variable, "" where there is none."""
        merge = self._input(switch, 0)
        starts = [edge.src for edge in self.graph.ins[merge] if edge.src in self.frame_of_enter] if merge >= 0 else []
        return self.frames[self.frame_of_enter[starts[0]]][0] if starts else ""

    def _bounds(self, condition: int) -> list[int]:
        """List the trip counts that the comparisons of a condition allow, where both sides start as constants."""
        bounds = []
        for i in self._ancestors(condition, _COMPARISONS | MERGES | {"LogicalOr"}):
            op = self.graph.nodes[i].op
            if op not in _COMPARISONS:
                continue
            start, limit = (self._constant(self._input(i, slot)) for slot in (0, 1))
            if start is not None and limit is not None:
                bounds.append(max(0, limit - start + (op == "LessEqual")))
        return bounds

    def _ancestors(self, node: int, stop_at: frozenset[str]) -> list[int]:
        """List the nodes behind `node` by breadth; those of the kinds to stop at are listed, not passed."""
        found, seen = [node], {node}
        for i in found:
            if i != node and self.graph.nodes[i].op in stop_at:
                continue
            for edge in self.graph.ins[i]:
                before = self._behind(edge.src)
                if edge.dst_slot != CONTROL and before not in seen:
                    seen.add(before)
                    found.append(before)
        return found[1:]

    def _constant(self, i: int) -> int | None:
        """Read the integer that a value starts as, or that a loop has counted to; None where it is not known."""
        seen: set[int] = set()
        while i >= 0 and i not in seen:
            seen.add(i)
            op = self.graph.nodes[i].op
            if is_constant(op):
                return read_integer(self.graph, i)
            if is_exit(op):
                return self._count(i)
            if op == _POP:
                i = self._find_pushed(i)
            elif op in _PASSES_ON:
                i = self._input(i, 0)
            else:
                return None
        return None

    def _find_pushed(self, pop: int) -> int:
        """Return the value that a loop has put into the list from which another one takes it, -1 where none is found.

        A loop's gradient takes what it needs of each round so, such as the count of a loop within (while_v2.py).
        """
        found, seen = [self._input(pop, 0)], {pop}
        for i in found:
            if i < 0 or i in seen:
                continue
            seen.add(i)
            op = self.graph.nodes[i].op
            if op == _PUSH:
                return self._input(i, 1)
            if op in _PASSES_ON or op in CONTROL_FLOW:
                found += [self._behind(edge.src) for edge in self.graph.ins[i] if edge.dst_slot != CONTROL]
        return -1

    def _count(self, exit_: int) -> int | None:
        """Return what a variable that a loop adds 1 to in each round is at its end, None for any other.

        The loop of a gradient runs as often as the counter of its loop says (while_v2.py).
        """
        switch = self._input(exit_, 0)
        if switch < 0 or not is_switch(self.graph.nodes[switch].op) or exit_ in self.counted:
            return None
        self.counted.add(exit_)  # a graph may be a circle
        condition, merge = self._decider(switch), self._input(switch, 0)
        start, after = (self._constant(self._input(merge, 0)), self._input(merge, 1)) if merge >= 0 else (None, -1)
        added = self._follow(self._input(after, 0)) if after >= 0 else -1
        sides = [self._follow(self._input(added, slot)) for slot in (0, 1)] if added >= 0 else []
        is_counter = (
            is_loop_cond(self.graph.nodes[condition].op)
            and added >= 0
            and self.graph.nodes[added].op in _ADDITIONS
            and switch in sides
            and 1 in [self._constant(side) for side in sides if side != switch]
        )
        self.counted.discard(exit_)
        return start + self._loop(condition, switch).trips if is_counter and start is not None else None

    def _follow(self, i: int) -> int:
        """Return what a value is, or is another name of."""
        seen: set[int] = set()
        while i >= 0 and i not in seen and self.graph.nodes[i].op in IDENTITIES:
            seen.add(i)
            i = self._input(i, 0)
        return i
