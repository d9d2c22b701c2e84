"""The order in which the methods of a search take turns, for each objective."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

from simplace.optimize.anneal_loads import anneal_loads
from simplace.optimize.group_orders import order_by_depth, order_by_eigenvectors, order_depth_first
from simplace.optimize.grouped import GroupedProblem
from simplace.optimize.linear_split import split_by_load
from simplace.optimize.load_state import LoadState
from simplace.optimize.objectives import ObjectiveName
from simplace.optimize.problem import CPU

Candidate = tuple[str, list[int] | None]  # a method, and the device of each group; None if it found none
Strategy = Callable[[GroupedProblem, Random], Iterator[Candidate]]


def minimise_load(grouped: GroupedProblem, rng: Random) -> Iterator[Candidate]:
    """Yield candidates for the smallest largest load."""
    starts: list[list[int]] = []
    for method, candidate in _split_orders(grouped):
        if candidate is not None:
            starts.append(candidate)
        yield method, candidate
    if not starts:
        return
    largest = [max(LoadState(grouped, start).loads) for start in starts]
    ranked = [start for _, start in sorted(zip(largest, starts, strict=True), key=lambda pair: pair[0])]
    turn = 0
    while True:
        for power, hot in ((16, 0.03), (40, 0.003), (4, 0.003), (8, 0.3)):
            start = ranked[0] if turn % 2 == 0 else ranked[int(rng.random() * len(ranked))]
            found = start
            for found in anneal_loads(grouped, start, rng, rounds=10 << min(turn // 4, 5), power=power, hot=hot):
                yield "annealing", found
            ranked = sorted([*ranked[:8], found], key=lambda one: max(LoadState(grouped, one).loads))
            turn += 1


def _split_orders(grouped: GroupedProblem) -> Iterator[Candidate]:
    """Yield what needs no search: one device for all, and the best contiguous split of several orders."""
    for device in (CPU, 1):
        yield "one device", [device if device in allowed else allowed[0] for allowed in grouped.allowed]
    yield "split of a topological order", split_by_load(grouped, grouped.order)
    yield "split of an order by depth", split_by_load(grouped, order_by_depth(grouped))
    for order in order_by_eigenvectors(grouped):
        yield "split along an eigenvector", split_by_load(grouped, order)


STRATEGIES: dict[ObjectiveName, Strategy] = {
    "max_load": minimise_load,
    "latency": minimise_load,
    "makespan": minimise_load,
}
