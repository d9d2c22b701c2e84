"""Bytes alive per device over time: the peak, what holds it, and where memory would run out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from simplace.executor.trace import MemoryChange, Trace

_HOLDERS = 10


@dataclass(frozen=True, slots=True)
class Held:
    """Name a tensor in memory: output `slot` of a node of the partitioned graph; -1 for a constant or variable."""

    node: int
    slot: int
    size: int


@dataclass(frozen=True)
class MemoryUse:
    """Record of the memory of one device over time.

    `resident` is what constants, arguments and variables take all the time, `series` lists (time in nanoseconds,
    bytes alive from then on). `holders` are the largest tensors at the peak. `limit` is 0 where nothing limits.
    `runs_out` is the node whose output, or copy, would first not fit (-1: all fits), `alive_then` the largest then.
    """

    device: str
    resident: int
    peak: int
    peak_at: int
    holders: tuple[Held, ...]
    series: tuple[tuple[int, int], ...]
    limit: int = 0
    runs_out: int = -1
    runs_out_at: int = -1
    alive_then: tuple[Held, ...] = ()


def memory_use(trace: Trace, devices: tuple[str, ...], limits: Mapping[str, int]) -> tuple[MemoryUse, ...]:
    """Follow the memory of each device. Allocators are perfect here: no fragmentation."""
    return tuple(_of_device(trace, device, limits.get(device, 0)) for device in devices)


def _of_device(trace: Trace, device: str, limit: int) -> MemoryUse:
    permanent = [Held(node, -1, size) for where, size, node in trace.resident if where == device]
    changes = [change for change in trace.memory if change.device == device]
    resident = sum(held.size for held in permanent)
    now, peak, peak_at, holders = resident, resident, 0, _find_largest(permanent, {})
    series: list[tuple[int, int]] = [(0, resident)]
    runs_out, runs_out_at = -1, -1
    alive_then: tuple[Held, ...] = ()
    peak_index = -1
    for i, change in enumerate(changes):
        now += change.change
        if now > peak:
            peak, peak_at, peak_index = now, change.time, i
        if 0 < limit < now and runs_out < 0:
            runs_out, runs_out_at = change.node, change.time
            alive_then = _find_largest(permanent, _alive_after(changes, i))
        if series[-1][0] == change.time:
            series[-1] = (change.time, now)
        else:
            series.append((change.time, now))
    if peak_index >= 0:
        holders = _find_largest(permanent, _alive_after(changes, peak_index))
    if 0 < limit < resident:
        runs_out, runs_out_at, alive_then = permanent[0].node, 0, _find_largest(permanent, {})
    return MemoryUse(
        device, resident, peak, peak_at, holders, tuple(series), limit, runs_out, runs_out_at, alive_then
    )  # fmt: skip


def _alive_after(changes: list[MemoryChange], last: int) -> dict[tuple[int, int], int]:
    alive: dict[tuple[int, int], int] = {}
    for change in changes[: last + 1]:
        key = (change.node, change.slot)
        alive[key] = alive.get(key, 0) + change.change
    return {key: size for key, size in alive.items() if size}


def _find_largest(permanent: list[Held], alive: dict[tuple[int, int], int]) -> tuple[Held, ...]:
    held = permanent + [Held(node, slot, size) for (node, slot), size in alive.items()]
    return tuple(sorted(held, key=lambda one: (-one.size, one.node, one.slot))[:_HOLDERS])
