"""Intervals of time, as (start, end): merge them, measure them, count how many are open."""

from __future__ import annotations

from collections.abc import Iterable

Steps = tuple[tuple[int, int], ...]  # (time, how many from then on)


def merge_intervals(intervals: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Merge intervals that touch.

    >>> merge_intervals([(4, 6), (0, 2), (1, 3)])
    [(0, 3), (4, 6)]
    """
    found: list[tuple[int, int]] = []
    for start, end in sorted(intervals):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


def measure_coverage(intervals: Iterable[tuple[int, int]]) -> int:
    """Measure the time in which at least one interval is open.

    >>> measure_coverage([(4, 6), (0, 2), (1, 3)])
    5
    """
    return sum(end - start for start, end in merge_intervals(intervals))


def count_open(intervals: Iterable[tuple[int, int]]) -> Steps:
    """Count how many intervals are open, from each time on, without repeats.

    >>> count_open([(0, 2), (1, 3), (2, 4)])
    ((0, 1), (1, 2), (3, 1), (4, 0))
    """
    changes: dict[int, int] = {}
    for start, end in intervals:
        changes[start] = changes.get(start, 0) + 1
        changes[end] = changes.get(end, 0) - 1
    steps: list[tuple[int, int]] = []
    count = 0
    for time in sorted(changes):
        count += changes[time]
        if changes[time]:
            steps.append((time, count))
    return tuple(steps)
