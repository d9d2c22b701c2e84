"""Gather the members of each collective: it starts when the last one has come.

Mirrors core/nccl/nccl_manager.cc and core/common_runtime/base_collective_executor.cc: the kernels are asynchronous and
hold no thread; on GPUs NCCL has a stream of its own, which waits for what each member's GPU has enqueued so far.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from simplace.executor.propagator_state import Activation
from simplace.partition.graph_partition import PartitionedGraph


@dataclass(frozen=True, slots=True)
class Arrival:
    """Record of a member that has come: at `time`, by the span `released_by`; a dead one takes no part."""

    activation: Activation
    outputs: list[object]
    time: int
    released_by: int


@dataclass(slots=True)
class _Run:
    arrived: list[Arrival] = field(default_factory=list)


class CollectiveRuns:
    """Match the members of one step: the nth execution of one goes with the nth of every other."""

    def __init__(self, graph: PartitionedGraph) -> None:
        self._members = graph.members
        self._of = graph.collective_of
        self._count: dict[int, int] = {}
        self._waiting: dict[tuple[int, int], _Run] = {}

    def add(self, arrival: Arrival) -> list[Arrival]:
        """Add a member that has come; return all who take part once the last has, else none."""
        node = arrival.activation.node
        number, turn = self._of[node], self._count.get(node, 0)
        self._count[node] = turn + 1
        run = self._waiting.setdefault((number, turn), _Run())
        run.arrived.append(arrival)
        if len(run.arrived) < len(self._members[number]):
            return []
        del self._waiting[number, turn]
        return list(_list_live(run.arrived))

    def give_up(self) -> list[Arrival]:
        """Return the members that wait for one that never comes, of the oldest such run; none where none does.

        TensorFlow would wait forever. Loops and branches whose course was assumed can differ between the members.
        """
        while self._waiting:
            found = list(_list_live(self._waiting.pop(next(iter(self._waiting))).arrived))
            if found:
                return found
        return []


def _list_live(arrived: Iterable[Arrival]) -> Iterable[Arrival]:
    return (arrival for arrival in arrived if not arrival.activation.is_dead)
