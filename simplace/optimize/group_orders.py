"""Linear orders of groups in which what belongs together stands together."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np

from simplace.graph.algorithm import order_by_inputs
from simplace.optimize.grouped import GroupedProblem

SPECTRAL_LIMIT = 1500  # groups: beyond, eigenvectors take many seconds


def order_depth_first(grouped: GroupedProblem, rng: Random, stray: float) -> list[int]:
    """Return an order by inputs, made from its end: the next group is mostly one that the last group reads.

    With the probability `stray` it is any of those whose readers all stand. Groups on a cycle, and what they read,
    keep their place in `grouped.order`.
    """
    before: list[dict[int, None]] = [{} for _ in grouped.members]
    waits = [0] * len(grouped)
    for net in grouped.nets:
        for reader in net.readers:
            waits[net.producer] += net.producer not in before[reader]
            before[reader][net.producer] = None
    ready = [group for group, count in enumerate(waits) if not count]
    rng.shuffle(ready)
    backwards: list[int] = []
    while ready:
        group = ready.pop(int(rng.random() * len(ready)) if rng.random() < stray else -1)
        backwards.append(group)
        producers = list(before[group])
        rng.shuffle(producers)
        for producer in producers:
            waits[producer] -= 1
            if not waits[producer]:
                ready.append(producer)
    placed = set(backwards)
    return [group for group in grouped.order if group not in placed] + backwards[::-1]


def order_by_eigenvectors(grouped: GroupedProblem, most: int = 3) -> list[list[int]]:
    """Return the orders along the first eigenvectors of the normalised Laplacian, from the Fiedler vector on.

    Groups weigh on each other by the cost of what they exchange, so that a cut between neighbours is cheap. Cycles, as
    of the forward and backward nodes of one group, do not matter to it. None for more than `SPECTRAL_LIMIT` groups.
    """
    size = len(grouped)
    if not 2 <= size <= SPECTRAL_LIMIT:
        return []
    weight = np.zeros((size, size))
    for net in grouped.nets:
        for reader in net.readers:
            weight[net.producer, reader] += net.cost / len(net.readers)
    weight += weight.T
    heaviest = float(weight.max(initial=0.0)) or 1.0
    touches = np.zeros((size, size), dtype=bool)
    for net in grouped.nets:
        touches[net.producer, list(net.readers)] = True
    weight += 1e-6 * heaviest * (touches | touches.T) + 1e-9 * heaviest
    scale = 1 / np.sqrt(weight.sum(axis=1))
    laplacian = np.eye(size) - scale[:, None] * weight * scale[None, :]
    _, vectors = np.linalg.eigh(laplacian)
    orders = []
    for number in range(1, min(most + 1, size)):
        along = np.round(vectors[:, number] * scale, 12)
        orders.append([int(group) for group in np.argsort(along if along[0] <= 0 else -along, kind="stable")])
    return orders


def order_by_depth(grouped: GroupedProblem) -> list[int]:
    """Return the groups by the longest way from the inputs of the graph to their first node that reads something."""
    problem = grouped.problem
    depth = _depths(grouped)
    late = float(len(problem))
    first = [min((depth[node] for node in nodes if depth[node]), default=late) for nodes in grouped.members]
    for net in grouped.nets:  # what only feeds others stands before the first of them
        if first[net.producer] == late:
            first[net.producer] = min(first[reader] for reader in net.readers) - 0.5
    return sorted(range(len(grouped)), key=lambda group: (first[group], group))


def _depths(grouped: GroupedProblem) -> Sequence[float]:
    after: list[list[int]] = [[] for _ in range(len(grouped.problem))]
    waits = [0] * len(after)
    for output in grouped.problem.outputs:
        after[output.producer].extend(output.readers)
        for reader in output.readers:
            waits[reader] += 1
    depth = [0.0] * len(after)
    for node in order_by_inputs(waits, after.__getitem__):
        for reader in after[node]:
            depth[reader] = max(depth[reader], depth[node] + 1)
    return depth
