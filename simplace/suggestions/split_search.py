"""Search which parts of a step should compute on which GPU: solve a small model of them, then improve by estimates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import inf

from simplace.optimize import Output, PlacementProblem, search_placements

Assignment = tuple[int, ...]  # the GPU, by number, of each unit
Estimate = Callable[[Assignment], int | None]  # of the nanoseconds of a step; None where TensorFlow would refuse it
_ESTIMATES = 40
_ROUNDS = 30  # of the search in the model, milliseconds each
_COPY = 20_000.0  # nanoseconds that a tensor between two GPUs costs at first sight; the estimates know better


@dataclass(frozen=True)
class Unit:
    """Record of what moves as one: its nodes, the nanoseconds that they take, the units whose results they read."""

    nodes: tuple[int, ...]
    time: int
    reads: frozenset[int]


def search_split(units: Sequence[Unit], gpus: int, present: int, estimate: Estimate) -> Assignment | None:
    """Return the best assignment of units to GPUs that is found, None if none takes less than `present` nanoseconds.

    All units are on GPU 0 as the program is.
    """
    search = _Search(units, gpus, estimate)
    best = search.run()
    return None if not any(best) or search.find_time(best) >= present else best


class _Search:
    def __init__(self, units: Sequence[Unit], gpus: int, estimate: Estimate) -> None:
        self.units = units
        self.gpus = gpus
        self.estimate = estimate
        self.known: dict[Assignment, int | None] = {}

    def run(self) -> Assignment:
        """Return the best assignment that was found."""
        stay = (0,) * len(self.units)
        starts = [one for one in dict.fromkeys(self._propose()) if one != stay]
        return self._improve(min(starts, key=self.find_time, default=stay))

    def find_time(self, chosen: Assignment) -> float:
        """Return the nanoseconds of a step, infinity where TensorFlow would refuse it."""
        if chosen not in self.known:
            self.known[chosen] = self.estimate(chosen)
        found = self.known[chosen]
        return inf if found is None else found

    def _improve(self, best: Assignment) -> Assignment:
        """Move one unit at a time, the longest first, as long as something gains and estimates are left."""
        order = sorted(range(len(self.units)), key=lambda i: -self.units[i].time)
        gained = True
        while gained:
            gained = False
            for i in order:
                for gpu in range(self.gpus):
                    moved = (*best[:i], gpu, *best[i + 1 :])
                    if len(self.known) >= _ESTIMATES and moved not in self.known:
                        return best
                    if self.find_time(moved) < self.find_time(best):
                        best, gained = moved, True
        return best

    def _propose(self) -> Iterator[Assignment]:
        """Yield assignments that are good if only the units' own times and copies between them counted.

        What a unit reads of a later one, as in a loop, does not count.
        """
        every = range(len(self.units))
        readers = [tuple(j for j in every if j > i and i in self.units[j].reads) for i in every]
        problem = PlacementProblem(
            accelerators=self.gpus,
            accelerator_bytes=inf,
            accelerator_time=tuple(float(unit.time) for unit in self.units),
            cpu_time=(inf,) * len(self.units),
            node_bytes=(0.0,) * len(self.units),
            outputs=tuple(Output(i, each, _COPY) for i, each in enumerate(readers) if each),
            group_of=tuple(range(len(self.units))),
        )
        for solution in islice(search_placements(problem, "makespan"), _ROUNDS):
            yield tuple(device - 1 for device in solution.device_of)
