"""The best split of a linear order of groups into segments, one for each device, by dynamic programming."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from simplace.optimize.grouped import GroupedProblem
from simplace.optimize.problem import CPU

Table = NDArray[np.float64]
Pieces = Sequence[Sequence[int]]  # groups that stand together in an order

MOST_PIECES = 800  # the tables are squares of it


def split_by_load(grouped: GroupedProblem, order: Sequence[int]) -> list[int] | None:
    """Return the split with the smallest largest load, the device of each group; None if none keeps the limits.

    At most one segment is the CPU's, and it may stand anywhere.
    """
    pieces = cut_order(order)
    accelerator, cpu = tabulate_segments(grouped, pieces)
    prefixes = np.arange(len(pieces) + 1)
    # By whether the CPU has its segment, by accelerators used: the largest load of each prefix, and its last segment.
    states: dict[tuple[int, int], _Prefixes] = {}
    for used in range(grouped.problem.accelerators + 1):
        for has_cpu in (0, 1):
            here = _Prefixes(np.full(len(prefixes), np.inf), prefixes.copy(), np.zeros(len(prefixes), dtype=np.bool_))
            if not used and not has_cpu:
                here.largest[0] = 0.0
            if used:
                here.append(states[has_cpu, used - 1], accelerator, is_cpu=False)
            if has_cpu:
                here.append(states[0, used], cpu, is_cpu=True)
            states[has_cpu, used] = here
    best = min(states, key=lambda state: (states[state].largest[-1], state))
    return None if states[best].largest[-1] == np.inf else _read_back(pieces, states, best, len(grouped))


@dataclass(frozen=True)
class _Prefixes:
    """The best way to split each prefix among some devices."""

    largest: Table
    start: NDArray[np.int64]  # of the last segment
    is_cpu: NDArray[np.bool_]  # whether the CPU has it

    def append(self, before: _Prefixes, segments: Table, *, is_cpu: bool) -> None:
        """Take over the prefixes that are better as one more segment after those of `before`."""
        loads = np.maximum(before.largest[:, None], segments)
        start = loads.argmin(axis=0)
        largest = loads[start, np.arange(len(start))]
        better = largest < self.largest
        self.largest[better] = largest[better]
        self.start[better] = start[better]
        self.is_cpu[better] = is_cpu


def _read_back(pieces: Pieces, states: dict[tuple[int, int], _Prefixes], at: tuple[int, int], groups: int) -> list[int]:
    device_of, end = [CPU] * groups, len(pieces)
    while end:
        has_cpu, used = at
        start, is_cpu = int(states[at].start[end]), bool(states[at].is_cpu[end])
        for group in chain.from_iterable(pieces[start:end]):
            device_of[group] = CPU if is_cpu else used
        at, end = (has_cpu - is_cpu, used - (not is_cpu)), start
    return device_of


def cut_order(order: Sequence[int]) -> Pieces:
    """Return an order in pieces of equally many groups: of one, unless there are more than `MOST_PIECES` groups."""
    many = max(1, -(-len(order) // MOST_PIECES))
    return [order[at : at + many] for at in range(0, len(order), many)]


def tabulate_segments(grouped: GroupedProblem, pieces: Pieces) -> tuple[Table, Table]:
    """Return the load of an accelerator, and of the CPU, that takes the pieces from i up to j, excluded, of an order.

    Infinity where it may not. Both tables are square, [i, j], one longer than the pieces.
    """
    size = len(pieces)
    position = {group: at for at, piece in enumerate(pieces) for group in piece}
    corners = np.zeros((size + 2, size + 2))  # differences: a sum over both axes makes rectangles of them
    for net in grouped.nets:
        if net.cost:
            _add_net(
                corners, size, position[net.producer], sorted({position[reader] for reader in net.readers}), net.cost
            )
    transfers = corners.cumsum(axis=0).cumsum(axis=1)[: size + 1, : size + 1]
    accelerator = _sum_segments(grouped, pieces, 1) + transfers if grouped.problem.accelerators else transfers + np.inf
    held = _accumulate([sum(grouped.bytes[group] for group in piece) for piece in pieces])
    accelerator[held > grouped.problem.accelerator_bytes] = np.inf
    cpu = _sum_segments(grouped, pieces, CPU)
    below = np.tri(size + 1, dtype=bool)
    accelerator[below] = cpu[below] = np.inf  # a segment has a group
    return accelerator, cpu


def _add_net(corners: Table, size: int, home: int, readers: list[int], cost: float) -> None:
    """Add the cost of a net to each segment that holds its producer, or a reader, but not all of both."""
    before = -1
    for reader in readers:  # the first reader in a segment
        _add(corners, (before + 1, reader), (reader + 1, size), cost)
        if before < home:
            _add(corners, (before + 1, min(reader, home)), (max(reader, home) + 1, size), -cost)
        before = reader
    _add(corners, (0, home), (home + 1, size), cost)
    _add(corners, (0, min(home, readers[0])), (max(home, readers[-1]) + 1, size), -cost)


def _add(corners: Table, rows: tuple[int, int], columns: tuple[int, int], cost: float) -> None:
    (top, bottom), (left, right) = rows, columns
    if top > bottom or left > right:
        return
    corners[top, left] += cost
    corners[bottom + 1, left] -= cost
    corners[top, right + 1] -= cost
    corners[bottom + 1, right + 1] += cost


def _sum_segments(grouped: GroupedProblem, pieces: Pieces, device: int) -> Table:
    """Return the time of the groups of each segment on a device, infinity if one of them may not be there."""
    allows = [all(device in grouped.allowed[group] for group in piece) for piece in pieces]
    times = [sum(grouped.time[group][device] for group in piece) for piece in pieces]
    table = _accumulate([time if allowed else 0.0 for time, allowed in zip(times, allows, strict=True)])
    table[_accumulate([not allowed for allowed in allows]) > 0] = np.inf
    return table


def _accumulate(values: Sequence[float]) -> Table:
    """Return the sum of the values from i up to j, excluded."""
    total = np.concatenate([[0.0], np.cumsum(np.asarray(values, dtype=np.float64))])
    return np.asarray(total[None, :] - total[:, None])
