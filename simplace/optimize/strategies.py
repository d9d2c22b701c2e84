"""The order in which the methods of a search take turns, for each objective."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from random import Random

from simplace.optimize.anneal_latency import anneal_latency
from simplace.optimize.anneal_loads import anneal_loads
from simplace.optimize.anneal_makespan import anneal_makespan
from simplace.optimize.group_orders import order_by_depth, order_by_eigenvectors, order_depth_first
from simplace.optimize.grouped import GroupedProblem
from simplace.optimize.latency_state import LatencyState
from simplace.optimize.linear_blocks import split_by_latency
from simplace.optimize.linear_split import split_by_load
from simplace.optimize.list_schedule import pack_by_bytes, schedule_by_rank, schedule_by_start
from simplace.optimize.load_state import LoadState
from simplace.optimize.objectives import ObjectiveName
from simplace.optimize.step_makespan import StepSimulation

Candidate = tuple[str, list[int] | None]  # a method, and the device of each group; None if it found none
Strategy = Callable[[GroupedProblem, Random], Iterator[Candidate]]


ETF_LIMIT = 3000  # nodes: m-ETF compares all ready nodes on all devices for each


class _Starts:
    """The best placements so far, from which annealing starts."""

    KEPT = 8

    def __init__(self, grouped: GroupedProblem, measure: Callable[[list[int]], float]) -> None:
        self.grouped = grouped
        self.measure = measure
        self.kept: list[tuple[float, list[int]]] = []
        self.turns = 0

    def keep(self, start: list[int] | None) -> list[int] | None:
        """Keep a placement if it is among the best; return it."""
        if start is not None and self.grouped.fits(start) and all(start != other for _, other in self.kept):
            self.kept.append((self.measure(start), start))
            self.kept.sort(key=lambda pair: pair[0])
            del self.kept[self.KEPT :]
        return start

    def pick(self, rng: Random, turn: int) -> list[int]:
        """Return the best placement, or at every other turn any of those that are kept."""
        self.turns += 1
        return self.kept[0 if turn % 2 == 0 else int(rng.random() * len(self.kept))][1]

    def rounds(self, first: int, turns: int, doubled: int) -> int:
        """Return how long the next annealing is: twice as long after every `turns` of them, `doubled` times at most."""
        return first << min((self.turns - 1) // turns, doubled)


def minimise_load(grouped: GroupedProblem, rng: Random) -> Iterator[Candidate]:
    """Yield candidates for the smallest largest load."""
    starts = _Starts(grouped, lambda start: max(LoadState(grouped, start).loads))
    for method, start in chain(_use_one_device(grouped), _split_orders(grouped)):
        yield method, starts.keep(start)
    while starts.kept:
        for turn, (power, hot) in enumerate(((16, 0.03), (40, 0.003), (4, 0.003), (8, 0.3))):
            found = start = starts.pick(rng, turn)
            for found in anneal_loads(grouped, start, rng, rounds=starts.rounds(10, 4, 5), power=power, hot=hot):
                yield "annealing", found
            starts.keep(found)


def minimise_latency(grouped: GroupedProblem, rng: Random) -> Iterator[Candidate]:
    """Yield candidates for the smallest latency of blocks."""
    starts = _Starts(grouped, lambda start: LatencyState(grouped, start).measure())
    for method, start in _use_one_device(grouped):
        yield method, starts.keep(start)
    for order in (grouped.order, order_by_depth(grouped)):
        yield "blocks of a topological order", starts.keep(split_by_latency(grouped, order))
    while starts.kept:
        for turn, hot in enumerate((0.03, 0.1, 0.03)):
            for _ in range(10):
                order = order_depth_first(grouped, rng, stray=rng.choice((0.0, 0.1, 0.5)))
                yield "blocks of a topological order", starts.keep(split_by_latency(grouped, order))
            found = start = starts.pick(rng, turn)
            for found in anneal_latency(grouped, start, rng, rounds=starts.rounds(40, 1, 2), hot=hot):
                yield "annealing", found
            starts.keep(found)


def minimise_makespan(grouped: GroupedProblem, rng: Random) -> Iterator[Candidate]:
    """Yield candidates for the smallest makespan of a step."""
    simulation = StepSimulation(grouped.problem)
    starts = _Starts(grouped, lambda start: simulation.run(grouped.spread(start)))
    for method, start in _use_one_device(grouped):
        yield method, starts.keep(start)
    yield "list schedule (HEFT)", starts.keep(schedule_by_rank(grouped))
    if len(grouped.problem) <= ETF_LIMIT:
        yield "list schedule (m-ETF)", starts.keep(schedule_by_start(grouped))
    for method, start in _split_orders(grouped):
        yield method, starts.keep(start)
    while starts.kept:
        for turn, hot in enumerate((0.01, 0.03, 0.003)):
            found = start = starts.pick(rng, turn)
            for found in anneal_makespan(grouped, start, rng, rounds=starts.rounds(40, 2, 4), hot=hot):
                yield "annealing", found
            starts.keep(found)


def _use_one_device(grouped: GroupedProblem) -> Iterator[Candidate]:
    """Yield the CPU, and one accelerator, for all that they allow; then what keeps the memory where both may not."""
    for device in list(grouped.problem.devices)[:2]:
        yield "one device", [device if device in allowed else allowed[0] for allowed in grouped.allowed]
    yield "first fit by bytes", pack_by_bytes(grouped)


def _split_orders(grouped: GroupedProblem) -> Iterator[Candidate]:
    """Yield the best contiguous splits by load of several orders."""
    yield "split of a topological order", split_by_load(grouped, grouped.order)
    yield "split of an order by depth", split_by_load(grouped, order_by_depth(grouped))
    for order in order_by_eigenvectors(grouped):
        yield "split along an eigenvector", split_by_load(grouped, order)


STRATEGIES: dict[ObjectiveName, Strategy] = {
    "max_load": minimise_load,
    "latency": minimise_latency,
    "makespan": minimise_makespan,
}
