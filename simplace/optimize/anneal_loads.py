"""Simulated annealing of the loads of all devices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import exp
from random import Random

from simplace.optimize.grouped import GroupedProblem
from simplace.optimize.load_state import LoadState
from simplace.optimize.proposals import Proposals

ROUND, SMALL = 20_000, 200  # moves between two looks at the clock: at most, and for each group
COLD = 1e-5
CLUSTERS, SWAPS = 0.1, 0.1  # part of the moves


def anneal_loads(
    grouped: GroupedProblem, start: Sequence[int], rng: Random, *, rounds: int, power: int, hot: float
) -> Iterator[list[int]]:
    """Yield the best placement so far after each round.

    Minimises the sum of (load / largest load of the start) ** power, which a move changes in two terms only: a large
    power looks at the largest load alone, a small one also at what transfers add to the others.
    """
    state = LoadState(grouped, start)
    scale = max(state.loads) or 1.0
    best, found = max(state.loads), list(start)
    annealing = _Annealing(state, Proposals(grouped, state.device_of, rng), power, scale)
    for number in range(rounds):
        warmth = hot * (COLD / hot) ** (number / rounds)
        next_warmth = hot * (COLD / hot) ** ((number + 1) / rounds)
        best, found = annealing.run_round(warmth, (next_warmth / warmth) ** (1 / annealing.moves), best, found)
        yield found


class _Annealing:
    def __init__(self, state: LoadState, proposals: Proposals, power: int, scale: float) -> None:
        self.state = state
        self.moves = min(ROUND, SMALL * len(state.device_of))
        self.proposals = proposals
        self.power = power
        self.scale = scale

    def run_round(self, warmth: float, cooling: float, best: float, found: list[int]) -> tuple[float, list[int]]:
        """Try moves; return the smallest largest load with its placement."""
        state, proposals, random = self.state, self.proposals, self.proposals.rng.random
        state.set_all(list(state.device_of))  # rounding must not add up
        loads, device_of, allowed = state.loads, state.device_of, state.grouped.allowed
        groups, power, scale = len(device_of), self.power, self.scale
        held, sizes, limit = state.held, state.grouped.bytes, state.grouped.problem.accelerator_bytes
        for _ in range(self.moves):
            warmth *= cooling
            group = int(random() * groups)
            if len(allowed[group]) == 1:
                continue
            here, to = device_of[group], proposals.pick_target(group)
            if to == here:
                continue
            kind = random()
            if kind < CLUSTERS + SWAPS:
                if self._try_many(group, to, warmth, is_swap=kind < SWAPS):
                    largest = max(loads)
                    if largest < best:
                        best, found = largest, list(device_of)
                continue
            if to and held[to] + sizes[group] > limit:
                continue
            less, more = added = state.try_move(group, to)
            old, new = loads[here], loads[to]
            worse = ((old + less) / scale) ** power + ((new + more) / scale) ** power
            worse -= (old / scale) ** power + (new / scale) ** power
            if worse <= 0 or random() < exp(-worse / warmth):
                state.move(group, to, added)
                if worse < 0 and max(loads) < best:
                    best, found = max(loads), list(device_of)
        return best, found

    def _try_many(self, group: int, to: int, warmth: float, *, is_swap: bool) -> bool:
        """Move a cluster or swap two groups; return whether it was better, or not too bad."""
        state, proposals, random = self.state, self.proposals, self.proposals.rng.random
        here, limit = state.device_of[group], state.grouped.problem.accelerator_bytes
        size = 2 + int(random() * random() * min(40, len(state.device_of) // 3))
        moves = proposals.pick_swap(group, to) if is_swap else proposals.grow_cluster(group, to, size)
        before = self._energy(here, to)
        taken = state.move_many(moves)
        worse = self._energy(here, to) - before
        fits = all(not device or state.held[device] <= limit for device in (here, to))
        if fits and (worse <= 0 or random() < exp(-worse / warmth)):
            return True
        state.take_back(taken)
        return False

    def _energy(self, here: int, to: int) -> float:
        loads = self.state.loads
        return float((loads[here] / self.scale) ** self.power + (loads[to] / self.scale) ** self.power)
