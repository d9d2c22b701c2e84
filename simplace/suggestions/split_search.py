"""Search which parts of a step should compute on which GPU: solve a small model of them, then improve by estimates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import inf

from simplace.errors import NoPlacementError
from simplace.optimize import Output, PlacementProblem, search_placements
from simplace.suggestions.estimated_step import Estimate

Assignment = tuple[int, ...]  # the GPU, by number, of each unit
EstimateSplit = Callable[[Assignment], Estimate | None]  # None where TensorFlow would refuse it
_ESTIMATES = 40
_ROUNDS = 30  # of the search in the model, milliseconds each
_SHARE = 1.2  # of the units' bytes over the GPUs, to which units are packed at first
_COPY = 20_000.0  # nanoseconds that a tensor between two GPUs costs at first sight; the estimates know better


@dataclass(frozen=True)
class Unit:
    """Record of what moves as one: its nodes, the nanoseconds that they take, the units whose results they read.

    `size` is the bytes that it holds at the peak of a GPU.
    """

    nodes: tuple[int, ...]
    time: int
    reads: frozenset[int]
    size: int = 0


def search_split(
    units: Sequence[Unit], gpus: int, present: Estimate, estimate: EstimateSplit, room: float = inf
) -> Assignment | None:
    """Return the best assignment of units to GPUs that is found, None if none is better than `present`.

    All units are on GPU 0 as the program is. `room` is the bytes that each GPU has for units, infinity where all of
    them fit on one.
    """
    search = _SplitSearch(units, gpus, estimate, room)
    best = search.run()
    return None if not any(best) or search.judge(best) >= present else best


class _SplitSearch:
    def __init__(self, units: Sequence[Unit], gpus: int, estimate: EstimateSplit, room: float) -> None:
        self.units = units
        self.gpus = gpus
        self.estimate = estimate
        self.room = room
        self.known: dict[Assignment, Estimate | None] = {}

    def run(self) -> Assignment:
        """Return the best assignment that was found."""
        stay = (0,) * len(self.units)
        starts = [one for one in dict.fromkeys(self._propose()) if one != stay]
        return self._improve(min(starts, key=self.judge, default=stay))

    def judge(self, chosen: Assignment) -> tuple[float, float]:
        """Return the estimate of a step, infinity where TensorFlow would refuse it."""
        if chosen not in self.known:
            self.known[chosen] = self.estimate(chosen)
        found = self.known[chosen]
        return (inf, inf) if found is None else found

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
                    if self.judge(moved) < self.judge(best):
                        best, gained = moved, True
        return best

    def _propose(self) -> Iterator[Assignment]:
        """Yield assignments that are good if only the units' own times, sizes and copies between them counted.

        Where not all units fit on one GPU, those in which each has about its share come first.
        """
        if self.room < inf:
            share = sum(unit.size for unit in self.units) / self.gpus
            yield from self._solve(min(self.room, _SHARE * share))
        yield from self._solve(self.room)

    def _solve(self, room: float) -> Iterator[Assignment]:
        """Yield answers of the small model; what a unit reads of a later one, as in a loop, does not count."""
        every = range(len(self.units))
        readers = [tuple(j for j in every if j > i and i in self.units[j].reads) for i in every]
        problem = PlacementProblem(
            accelerators=self.gpus,
            accelerator_bytes=room,
            accelerator_time=tuple(float(unit.time) for unit in self.units),
            cpu_time=(inf,) * len(self.units),
            node_bytes=tuple(float(unit.size) for unit in self.units),
            outputs=tuple(Output(i, each, _COPY) for i, each in enumerate(readers) if each),
            group_of=tuple(range(len(self.units))),
        )
        try:
            for solution in islice(search_placements(problem, "makespan"), _ROUNDS):
                yield tuple(device - 1 for device in solution.device_of)
        except NoPlacementError:  # a unit is larger than the room: estimates may still find less that is missing
            return
