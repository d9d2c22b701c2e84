"""Bytes alive per device over time: the peak, what holds it, and where memory would run out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from simplace.analysis.memory_replay import AT_ONCE, MemoryBefore, Replay, Resident, Tensor
from simplace.executor.trace import MemoryChange, Trace

Resize = Callable[[Tensor, int], int]  # the bytes of a tensor that had so many


@dataclass(frozen=True, slots=True)
class Held:
    """Name a tensor in memory: output `slot` of a node of the partitioned graph, or as a `MemoryChange` has it."""

    node: int
    slot: int
    size: int


@dataclass(frozen=True)
class MemoryUse:
    """Record of the memory of one device over time.

    `resident` is what constants, arguments and variables take as the step begins, `series` lists (time in nanoseconds,
    bytes alive from then on). `holders` are the tensors at the peak, the largest first. `limit` is 0 where nothing
    limits. `runs_out` is the node whose output, or copy, TensorFlow's allocator would first find no room for (-1: all
    fits), `alive_then` the tensors then, with that one. `largest_free` is the largest piece of free memory then.
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
    largest_free: int = 0


def keep_size(_: Tensor, size: int) -> int:
    """Return the bytes of a tensor as they are."""
    return size


def memory_use(
    trace: Trace,
    devices: tuple[str, ...],
    limits: Mapping[str, int],
    resize: Resize = keep_size,
    before: Mapping[str, MemoryBefore] = MappingProxyType({}),
) -> tuple[MemoryUse, ...]:
    """Follow the memory of each device; where it is limited, TensorFlow's allocator allocates it.

    `resize` returns the bytes that each tensor is to have; `before` has what devices did before the step.
    """
    return tuple(
        _of_device(trace, device, limits.get(device, 0), resize, before.get(device, AT_ONCE)) for device in devices
    )


def replay_step(trace: Trace, device: str, resize: Resize = keep_size, before: MemoryBefore = AT_ONCE) -> Replay:
    """Return the requests to the allocator of a device if each tensor has the bytes that `resize` returns."""
    return Replay.of(*list_allocations(trace, device, resize), before)


def list_allocations(trace: Trace, device: str, resize: Resize) -> tuple[Resident, list[MemoryChange]]:
    """Return what is in a device's memory before the step begins, and what changes there, in the order of time.

    A node may stand for several variables, such as an update of an optimizer's that no other node reads.
    """
    permanent = [(one[2:], resize(one[2:], one.size)) for one in trace.resident if one.device == device]
    changes = [change for change in trace.memory if change.device == device]
    if resize is not keep_size:
        changes = [change._replace(change=_resize_change(change, resize)) for change in changes]
    return permanent, changes


def _resize_change(change: MemoryChange, resize: Resize) -> int:
    size = resize((change.node, change.slot), abs(change.change))
    return size if change.change > 0 else -size


def _of_device(trace: Trace, device: str, limit: int, resize: Resize, before: MemoryBefore) -> MemoryUse:
    permanent, changes = list_allocations(trace, device, resize)
    resident = sum(size for _, size in permanent)
    now, peak, peak_index = resident, resident, -1
    series: list[tuple[int, int]] = [(0, resident)]
    for i, change in enumerate(changes):
        now += change.change
        if now > peak:
            peak, peak_index = now, i
        if series[-1][0] == change.time:
            series[-1] = (change.time, now)
        else:
            series.append((change.time, now))
    peak_at = changes[peak_index].time if peak_index >= 0 else 0
    holders = _sort_alive(permanent, changes, peak_index)
    short = Replay.of(permanent, changes, before).find_shortage(limit) if limit > 0 else None
    if short is None:
        return MemoryUse(device, resident, peak, peak_at, holders, tuple(series), limit)
    at = changes[short.number].time if short.number >= 0 else 0
    alive_then = _sort_alive(permanent, changes, short.number)
    node = short.node if short.node >= 0 else next((one.node for one in holders), 0)  # before the step: the largest
    return MemoryUse(
        device, resident, peak, peak_at, holders, tuple(series), limit, node, at, alive_then, short.largest_free
    )  # fmt: skip


def _sort_alive(permanent: Resident, changes: list[MemoryChange], last: int) -> tuple[Held, ...]:
    """List what is alive after a change, the largest first."""
    alive: dict[Tensor, int] = {}
    for tensor, size in permanent:
        alive[tensor] = alive.get(tensor, 0) + size
    for change in changes[: last + 1]:
        tensor = change.node, change.slot
        alive[tensor] = alive.get(tensor, 0) + change.change
    held = [Held(node, slot, size) for (node, slot), size in alive.items() if size]
    return tuple(sorted(held, key=lambda one: (-one.size, one.node, one.slot)))
