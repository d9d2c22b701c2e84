"""Simulated annealing of the latency of blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import exp, inf
from random import Random

from simplace.optimize.grouped import GroupedProblem
from simplace.optimize.latency_state import LatencyState
from simplace.optimize.proposals import Proposal, Proposals

ROUND, SMALL = 500, 20  # moves between two looks at the clock: at most, and for each group
COLD = 1e-4
BORDER = 0.5  # of the proposals
LOADS = 0.02  # of the sum of all loads counts beside the latency: it shows where a transfer less is on its way


def anneal_latency(
    grouped: GroupedProblem, start: Sequence[int], rng: Random, *, rounds: int, hot: float
) -> Iterator[list[int]]:
    """Yield the best placement so far after each round; `hot` is the first temperature as a part of the latency."""
    state = LatencyState(grouped, start)
    proposals = Proposals(grouped, state.device_of, rng)
    position = {group: at for at, group in enumerate(grouped.order)}
    best = state.measure()
    scale = best if 0 < best < inf else 1.0
    energy, found = best + LOADS * sum(state.loads), list(start)
    limit = grouped.problem.accelerator_bytes
    for number in range(rounds):
        state.set_all(list(state.device_of))  # rounding must not add up
        warmth = scale * hot * (COLD / hot) ** (number / rounds)
        for _ in range(min(ROUND, SMALL * len(grouped))):
            moves = _propose(proposals, position)
            if not moves:
                continue
            taken = state.move_many(moves)
            value = state.measure() if all(held <= limit for held in state.held[1:]) else inf
            tried = value + LOADS * sum(state.loads)
            if tried <= energy or (value < inf and rng.random() < exp((energy - tried) / warmth)):
                energy = tried
                if value < best:
                    best, found = value, list(state.device_of)
                continue
            state.take_back(taken)
        yield found


def _propose(proposals: Proposals, position: dict[int, int]) -> Proposal:
    """Return a group with a new device, with its cluster, with what follows it on its device, or with a swap.

    Most groups lie in the middle of their block, and would only break it: mostly one at its border is picked.
    """
    rng, device_of, allowed = proposals.rng, proposals.device_of, proposals.grouped.allowed
    group = int(rng.random() * len(device_of))
    if rng.random() < BORDER:
        for _ in range(10):
            if any(device_of[other] != device_of[group] for other in proposals.neighbours[group]):
                break
            group = int(rng.random() * len(device_of))
    to = proposals.pick_target(group)
    here = device_of[group]
    if to == here:
        return []
    kind = rng.random()
    if kind < 0.5:
        return [(group, to)]
    if kind < 0.84:
        return proposals.grow_cluster(group, to, 2 + int(rng.random() ** 2 * min(60, len(device_of))))
    if kind < 0.94:
        return proposals.pick_swap(group, to)
    later = kind < 0.97
    return [
        (other, to)
        for other, device in enumerate(device_of)
        if (device == here and to in allowed[other] and (position[other] >= position[group]) == later) or other == group
    ]
