"""Outcomes of loops and branches: given by the user, observed in a step that ran, read from the graph, or assumed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Literal

from simplace.costs.outcomes import DEFAULT_TRIPS, How, Loop, Outcomes
from simplace.errors import SimplaceError, join_choices
from simplace.executor.list_memory import RESERVE
from simplace.graph.control_flow_info import name_frame
from simplace.graph.op_kinds import ENTERS, EXITS, IDENTITIES, NEXT_ITERATIONS, is_loop_cond, is_switch
from simplace.partition.graph_partition import PartitionedGraph
from simplace.partition.loop_trips import LoopTrips, Sureness, Trips

LIVE, DEAD = -1, -2  # what a finished node puts out: everything, nothing; k >= 0: output k alone
DEFAULT_PARALLEL = 10  # parallel_iterations of tf.while_loop

Role = Literal["enter", "exit", "next"]

_ROLES: Mapping[str, Role] = {
    **dict.fromkeys(ENTERS, "enter"), **dict.fromkeys(EXITS, "exit"), **dict.fromkeys(NEXT_ITERATIONS, "next"),
}  # fmt: skip
_RENAMES = IDENTITIES | ENTERS
_HOW: Mapping[Sureness, How] = {
    "exact": "read", "as called": "called", "at most": "bounded", "at most as called": "bounded as called",
    "assumed": "assumed",
}  # fmt: skip
_SURENESS: Mapping[How, Sureness] = {how: sureness for sureness, how in _HOW.items()}


@dataclass(frozen=True, slots=True)
class Branch:
    """Record of which output of the switches on one predicate is taken: 1 is "then" for an If.

    `by_run` has it for each time that it is decided, where that was observed, `by_round` for each round of the loop
    around it, where that is read off the graph.
    """

    predicate: str
    taken: int
    how: How
    by_run: tuple[int, ...] = ()
    by_round: tuple[int, ...] = ()

    def taken_at(self, run: int, number: int) -> int:
        """Return the output that is taken at the nth time, and in a round, both from 0.

        >>> Branch("p", 0, "observed", (1, 0, 0)).taken_at(0, 5), Branch("p", 1, "given").taken_at(7, 7)
        (1, 1)
        >>> Branch("p", 0, "read", (), (0, 1, 0)).taken_at(4, 1)
        1
        """
        found, place = (self.by_round, number) if self.by_round else (self.by_run, run)
        return found[min(place, len(found) - 1)] if found else self.taken


@dataclass(frozen=True)
class ControlFlow:
    """Record of the loops and branches of a graph with their outcomes.

    `role` has for each node what it does with frames, `frames` holds (name, enters, parallel iterations), which
    `frame_of_enter` points to. `list_lengths` says how many elements a node reserves for a list, where that is known.
    """

    role: tuple[Role | None, ...]
    is_constant: Mapping[int, bool]
    frame_of_enter: Mapping[int, int]
    frames: tuple[tuple[str, int, int], ...]
    loops: tuple[Loop, ...]
    branches: tuple[Branch, ...]
    loop_of_switch: Mapping[int, int] = field(default_factory=dict)
    branch_of_switch: Mapping[int, int] = field(default_factory=dict)
    list_lengths: Mapping[int, int] = field(default_factory=dict)


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
    graph, as far as it is integers that are known without running it, or that were arguments of the first call; else
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
        self.integers = LoopTrips(graph.placed, self._decide_trips)
        self.switches: dict[int, int] = {}  # by LoopCond one of its loop's variables
        self.decided: dict[int, Loop] = {}

    def read(self) -> ControlFlow:
        role = tuple(_ROLES.get(node.op) for node in self.graph.nodes)
        self._read_frames()
        loop_of: dict[int, int] = {}
        branch_of: dict[int, int] = {}
        loop_numbers: dict[int, int] = {}
        branch_numbers: dict[int, int] = {}
        deciders = {i: self._decider(i) for i, node in enumerate(self.graph.nodes) if is_switch(node.op)}
        for i, decider in deciders.items():
            if is_loop_cond(self.graph.nodes[decider].op):
                self.switches.setdefault(decider, i)
        for i, decider in deciders.items():
            if decider in self.switches:
                if decider not in loop_numbers:
                    loop_numbers[decider] = len(self.loops)
                    self.loops.append(self._loop(decider))
                loop_of[i] = loop_numbers[decider]
                continue
            if decider not in branch_numbers:
                branch_numbers[decider] = len(self.branches)
                self.branches.append(self._branch(i, decider))
            branch_of[i] = branch_numbers[decider]
        return ControlFlow(
            role, self.is_constant, self.frame_of_enter, tuple(self.frames), tuple(self.loops), tuple(self.branches),
            loop_of, branch_of, self._read_lengths(),
        )  # fmt: skip

    def _read_lengths(self) -> Mapping[int, int]:
        reserves = [
            (i, node.origin) for i, node in enumerate(self.graph.nodes) if node.op == RESERVE and node.origin >= 0
        ]
        found = {i: self.integers.read(origin)[0] for i, origin in reserves}
        return {i: length for i, length in found.items() if isinstance(length, int)}

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

    def _branch(self, switch: int, decider: int) -> Branch:
        name, node = self.graph.nodes[decider].name, self.graph.nodes[switch]
        if name in self.choices:
            return Branch(name, self.choices[name], "given")
        if by_run := self.observed.branches.get(name):
            return Branch(name, max(by_run, key=by_run.count), "observed", by_run)
        if node.origin >= 0:
            by_round, sureness = self.integers.list_predicates(node.origin)
            if by_round:
                usual = max(by_round, key=by_round.count)
                return Branch(name, usual, _HOW[sureness], (), by_round if len(set(by_round)) > 1 else ())
        return Branch(name, 0 if node.op == "_SwitchN" else 1, "assumed")

    def _loop(self, condition: int) -> Loop:
        """Return the loop with a condition."""
        if condition not in self.decided:
            self.decided[condition] = self._decide_loop(condition)
        return self.decided[condition]

    def _decide_loop(self, condition: int) -> Loop:
        name = self._frame_name(self.switches[condition]) or self.graph.nodes[condition].name
        if name in self.trips:
            return Loop(name, self.trips[name], "given")
        if by_entry := self.observed.trips.get(name):
            return Loop(name, round(fmean(by_entry)), "observed", by_entry)
        self.decided[condition] = Loop(name, DEFAULT_TRIPS, "assumed")  # a graph may be a circle
        origin = self.graph.nodes[condition].origin
        counted = self.integers.count(origin) if origin >= 0 else None
        return self.decided[condition] if counted is None else Loop(name, counted.trips, _HOW[counted.sureness])

    def _decide_trips(self, loop_cond: int) -> Trips:
        """Return how often a loop runs, by its LoopCond in the placed graph."""
        number = self.graph.node_of_origin.get(loop_cond, -1)
        if number not in self.switches:
            return self.integers.count(loop_cond) or Trips(DEFAULT_TRIPS, "assumed")
        loop = self._loop(number)
        return Trips(loop.trips, _SURENESS.get(loop.how, "exact"))

    def _frame_name(self, switch: int) -> str:
        """Return the frame of the Enter behind the Merge of a loop's variable, "" where there is none."""
        merge = self._input(switch, 0)
        starts = [edge.src for edge in self.graph.ins[merge] if edge.src in self.frame_of_enter] if merge >= 0 else []
        return self.frames[self.frame_of_enter[starts[0]]][0] if starts else ""
