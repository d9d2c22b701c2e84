"""Simulated annealing of the makespan of a step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import exp, inf
from random import Random

from simplace.optimize.grouped import GroupedProblem
from simplace.optimize.problem import CPU
from simplace.optimize.proposals import Proposals
from simplace.optimize.step_makespan import StepSimulation

NODES, SMALL = 20_000, 20  # nodes simulated between two looks at the clock, at most; moves for each group
COLD = 1e-5


def anneal_makespan(
    grouped: GroupedProblem, start: Sequence[int], rng: Random, *, rounds: int, hot: float
) -> Iterator[list[int]]:
    """Yield the best placement so far after each round; `hot` is the first temperature as a part of the makespan."""
    simulation = StepSimulation(grouped.problem)
    device_of, node_devices = list(start), list(grouped.spread(list(start)))
    held = [0.0] * len(grouped.problem.devices)
    for group, device in enumerate(device_of):
        held[device] += grouped.bytes[group]
    proposals = Proposals(grouped, device_of, rng)
    value = best = simulation.run(node_devices)
    scale, found = best if 0 < best < inf else 1.0, list(start)

    def take(moves: Sequence[tuple[int, int]]) -> None:
        for group, to in moves:
            held[device_of[group]] -= grouped.bytes[group]
            held[to] += grouped.bytes[group]
            device_of[group] = to
            for node in grouped.members[group]:
                node_devices[node] = to

    tries = max(1, min(NODES // len(node_devices), SMALL * len(grouped)))
    for number in range(rounds):
        warmth = scale * hot * (COLD / hot) ** (number / rounds)
        for _ in range(tries):
            moves = _propose(proposals)
            if not moves:
                continue
            back = [(group, device_of[group]) for group, _ in reversed(moves)]
            take(moves)
            fits = all(each <= grouped.problem.accelerator_bytes for each in held[CPU + 1 :])
            tried = simulation.run(node_devices) if fits else inf
            if tried <= value or (tried < inf and rng.random() < exp((value - tried) / warmth)):
                value = tried
                if value < best:
                    best, found = value, list(device_of)
            else:
                take(back)
        yield found


def _propose(proposals: Proposals) -> list[tuple[int, int]]:
    """Return a group, a cluster or a swap."""
    rng, groups = proposals.rng, len(proposals.device_of)
    group = int(rng.random() * groups)
    to = proposals.pick_target(group)
    if to == proposals.device_of[group]:
        return []
    kind = rng.random()
    if kind < 0.4:
        return [(group, to)]
    if kind < 0.9:
        return proposals.grow_cluster(group, to, 2 + int(rng.random() * rng.random() * max(1, groups // 2)))
    return proposals.pick_swap(group, to)
