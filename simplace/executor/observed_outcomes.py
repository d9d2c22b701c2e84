"""Outcomes of the loops and branches of a step that ran, read off the names of its live nodes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from simplace.costs.outcomes import Outcomes
from simplace.executor.control_flow import ControlFlow
from simplace.graph.op_kinds import MERGES
from simplace.partition.graph_partition import PartitionedGraph


def observe_outcomes(graph: PartitionedGraph, flow: ControlFlow, order: Sequence[str]) -> Outcomes:
    """Read how often loops ran and which branches were taken; `flow` tells the switches of each.

    `order` names the nodes that ran by start, each as often as it ran: no dead ones. What did not run at all is left
    out. Which entry of a loop and which branch within one were meant is told by the order of the starts: exact on one
    thread while one entry ends before the next begins, a guess otherwise.
    """
    runs: dict[str, list[int]] = {}
    for place, name in enumerate(order):
        runs.setdefault(name, []).append(place)
    reader = _OutcomeReader(graph, flow, runs)
    return Outcomes(dict(reader.list_trips()), dict(reader.list_branches()))


class _OutcomeReader:
    def __init__(self, graph: PartitionedGraph, flow: ControlFlow, runs: Mapping[str, list[int]]) -> None:
        self.graph = graph
        self.flow = flow
        self.runs = runs

    def list_trips(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Yield for each loop how often its body ran each time that the loop was entered.

        A Switch runs before each round, and once more before its Exit.
        """
        seen: set[int] = set()
        for switch, loop in self.flow.loop_of_switch.items():
            exits = [edge.dst for edge in self.graph.outs[switch] if self.flow.role[edge.dst] == "exit"]
            left = max((self._runs_of(exit_) for exit_ in exits), key=len, default=[])
            if left and loop not in seen:
                seen.add(loop)
                yield self.flow.loops[loop].name, _count_rounds(self._runs_of(switch), left)

    def list_branches(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Yield for each predicate the outputs taken."""
        switches: dict[int, list[int]] = {}
        for switch, branch in self.flow.branch_of_switch.items():
            switches.setdefault(branch, []).append(switch)
        for branch, own in switches.items():
            if taken := self._list_taken(own):
                yield self.flow.branches[branch].predicate, taken

    def _list_taken(self, switches: Sequence[int]) -> tuple[int, ...]:
        """Return the output that switches on one predicate took, each time that they ran.

        What runs behind an output runs as often as that was taken; a Merge runs whichever was.
        """
        behind: dict[int, list[int]] = {}  # output: the starts of a node behind it
        for switch in switches:
            for edge in self.graph.outs[switch]:
                if edge.src_slot >= 0 and self.graph.nodes[edge.dst].op not in MERGES:
                    behind[edge.src_slot] = max(behind.get(edge.src_slot, []), self._runs_of(edge.dst), key=len)
        starts = sorted((start, output) for output, places in behind.items() for start in places)
        if starts:
            return tuple(output for _, output in starts)
        ran = max((len(self._runs_of(switch)) for switch in switches), default=0)
        others = {0, 1} - behind.keys()
        return tuple(others) * ran if len(others) == 1 else ()

    def _runs_of(self, node: int) -> list[int]:
        return self.runs.get(self.graph.nodes[node].name, [])


def _count_rounds(switched: Sequence[int], left: Sequence[int]) -> tuple[int, ...]:
    """Count the rounds of a loop before each start of its Exit; their mean where two entries overlap.

    >>> _count_rounds([1, 2, 4, 10], [5, 11]), _count_rounds([1, 2, 3, 4, 5, 6], [7, 8])
    ((2, 0), (2, 2))
    """
    begins = [0, *(bisect_left(switched, start) for start in left)]
    rounds = tuple(after - before - 1 for before, after in pairwise(begins))
    return rounds if min(rounds) >= 0 else (round(len(switched) / len(left)) - 1,) * len(left)
