"""Follow what the tensors of each of some groups take of a device's memory, over time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import TypeVar

from simplace.analysis.memory import MemoryUse, Resize, keep_size, list_allocations
from simplace.analysis.memory_replay import Tensor
from simplace.executor.trace import MemoryChange, Trace

K = TypeVar("K")
Series = tuple[tuple[int, int], ...]  # (time in nanoseconds, bytes from then on)


def follow_groups(
    trace: Trace, use: MemoryUse, group: Callable[[Tensor], K], resize: Resize = keep_size
) -> dict[K, Series]:
    """Return the bytes of each group over time, in the order in which groups have any.

    All groups have a point at the device's peak, though it may last no time: there they sum up to it. `use` must be of
    the same trace and the same sizes.
    """
    permanent, changes = list_allocations(trace, use.device, resize)
    now: Counter[K] = Counter()
    for tensor, size in permanent:
        now[group(tensor)] += size
    peak = _find_peak(changes, sum(size for _, size in permanent), use)
    series = {key: [(0, size)] for key, size in now.items()}
    kept: dict[K, int] = {}
    for i, change in enumerate(changes):
        key = group((change.node, change.slot))
        now[key] += change.change
        _add_point(series.setdefault(key, [(0, 0)]), change.time, now[key], kept.get(key, -1))
        if i == peak:
            for one, points in series.items():
                _add_point(points, change.time, now[one], -1)
                kept[one] = len(points) - 1
    return {key: tuple(points) for key, points in series.items()}


def find_bytes_at_peak(series: Mapping[K, Series], use: MemoryUse) -> dict[K, int]:
    """Return what each group takes at the device's peak."""
    return {key: next((size for time, size in points if time == use.peak_at), _last_before(points, use.peak_at))
            for key, points in series.items()}  # fmt: skip


def _find_peak(changes: list[MemoryChange], resident: int, use: MemoryUse) -> int:
    """Return the number of the change that makes the peak, -1 where it is there before the step begins."""
    now = resident
    for i, change in enumerate(changes):
        now += change.change
        if now == use.peak and resident < use.peak:
            return i
    return -1


def _add_point(points: list[tuple[int, int]], time: int, size: int, kept: int) -> None:
    """Add a point in place of the last one, if that has the same time and need not be kept."""
    if points[-1][0] == time and len(points) - 1 != kept:
        points[-1] = (time, size)
    else:
        points.append((time, size))


def _last_before(points: Series, time: int) -> int:
    return next((size for at, size in reversed(points) if at < time), 0)
