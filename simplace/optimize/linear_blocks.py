"""The best split of a linear order of groups into blocks and stretches on the CPU that follow each other."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from simplace.graph.algorithm import order_by_inputs
from simplace.optimize.grouped import GroupedProblem
from simplace.optimize.linear_split import Pieces, Table, cut_order, tabulate_segments
from simplace.optimize.problem import CPU

Indices = NDArray[np.int64]


def split_by_latency(grouped: GroupedProblem, order: Sequence[int]) -> list[int] | None:
    """Return the split with the smallest sum of loads of blocks and critical paths on the CPU; None if there is none.

    What can run side by side is not seen: the latency of the split may be smaller than the sum.
    """
    pieces = cut_order(order)
    blocks, _ = tabulate_segments(grouped, pieces)
    stretches = tabulate_cpu_paths(grouped, pieces)
    after = np.full(len(pieces) + 1, np.inf)  # the best sum, by prefix
    after[0] = 0.0
    totals: list[float] = []  # by number of blocks
    came: list[tuple[Indices, Indices]] = []  # where the block, and the stretch after it, begin; by prefix
    for used in range(grouped.problem.accelerators + 1):
        starts, after = _append(after, blocks) if used else (np.arange(len(after)), after)
        paths, with_stretch = _append(after, stretches)
        is_better = with_stretch < after
        came.append((starts, np.where(is_better, paths, np.arange(len(after)))))
        after = np.where(is_better, with_stretch, after)
        totals.append(float(after[-1]))
    best = min(totals)
    return None if best == np.inf else _read_back(pieces, came[: totals.index(best) + 1], len(grouped))


def _append(before: Table, segments: Table) -> tuple[Indices, Table]:
    """Return, for each prefix, where the last segment begins and the sum with it."""
    sums = before[:, None] + segments
    starts = sums.argmin(axis=0)
    return starts, sums[starts, np.arange(len(before))]


def _read_back(pieces: Pieces, came: list[tuple[Indices, Indices]], groups: int) -> list[int]:
    device_of, end = [CPU] * groups, len(pieces)
    for used in range(len(came) - 1, 0, -1):
        starts, paths = came[used]
        end = int(paths[end])
        for group in chain.from_iterable(pieces[int(starts[end]) : end]):
            device_of[group] = used
        end = int(starts[end])
    return device_of


def tabulate_cpu_paths(grouped: GroupedProblem, pieces: Pieces) -> Table:
    """Return the critical path, on the CPU, of the pieces from i up to j, excluded, of an order.

    Infinity where they may not be there; the table is as that of `tabulate_segments`.
    """
    size, problem = len(pieces), grouped.problem
    position = [0] * len(problem)
    for at, group in ((at, group) for at, piece in enumerate(pieces) for group in piece):
        for node in grouped.members[group]:
            position[node] = at
    before, nodes = _order_nodes(grouped, position)
    begins = np.arange(size + 1)
    end = np.zeros((len(problem), size + 1))  # when a node ends, by the group that the stretch begins with
    longest = np.zeros(size + 1)
    table = np.full((size + 1, size + 1), np.inf)
    first = 0
    for node in nodes:
        at = position[node]
        for done in range(first, at):
            table[: done + 1, done + 1] = longest[: done + 1]
        first = max(first, at)
        for producer in before[node]:
            np.maximum(end[node], np.where(begins <= position[producer], end[producer], 0.0), out=end[node])
        end[node] += problem.cpu_time[node]
        np.maximum(longest, np.where(begins <= at, end[node], 0.0), out=longest)
    for done in range(first, size):
        table[: done + 1, done + 1] = longest[: done + 1]
    for at, piece in enumerate(pieces):
        if not all(CPU in grouped.allowed[group] for group in piece):
            table[: at + 1, at + 1 :] = np.inf
    return table


def _order_nodes(grouped: GroupedProblem, position: list[int]) -> tuple[list[list[int]], list[int]]:
    """Return the producers of each node, and the nodes by position of their group, in one group by their inputs."""
    before: list[list[int]] = [[] for _ in position]
    after: list[list[int]] = [[] for _ in position]
    for output in grouped.problem.outputs:
        for reader in set(output.readers):
            before[reader].append(output.producer)
            after[output.producer].append(reader)
    by_inputs = order_by_inputs([len(producers) for producers in before], after.__getitem__)
    return before, sorted(by_inputs, key=position.__getitem__)
