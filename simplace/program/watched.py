"""What ran in the user's own process while it was watched: ops by device, and copies between devices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class RanOps:
    """Count the ops of one type that a line of the user's has on a device.

    `at` is "" where the line is unknown, or the device is none of those whose ops are named (`choose_named`).
    """

    op: str
    device: str
    at: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class RanCopy:
    """Record of a tensor that each call sends from one device to another; `size` is in bytes (None: unknown)."""

    tensor: str
    source: str
    target: str
    size: int | None


@dataclass(frozen=True, slots=True)
class RanFunction:
    """Record of a function as TensorFlow runs it, after Grappler, and of how often it was called."""

    name: str
    times: int
    ops: tuple[RanOps, ...]
    copies: tuple[RanCopy, ...] = ()


@dataclass(frozen=True, slots=True)
class Watched:
    """Record of all that ran: functions in the order of their first call, and the ops that ran outside of them.

    `remarks` are sentences on what was not seen.
    """

    functions: tuple[RanFunction, ...] = ()
    eager: tuple[RanOps, ...] = ()
    remarks: tuple[str, ...] = field(default=())

    @property
    def ops(self) -> Iterator[RanOps]:
        """Yield the ops of all functions, then those outside of them."""
        for function in self.functions:
            yield from function.ops
        yield from self.eager

    def count_by_device(self) -> Counter[str]:
        """Count the ops on each device, each once however often it ran."""
        return _count(self.ops)

    def step(self) -> RanFunction | None:
        """Return the function that was called most often, the one with most ops of several; None without any."""
        return max(self.functions, key=lambda one: (one.times, _count(one.ops).total()), default=None)


def choose_named(counts: Mapping[str, int]) -> frozenset[str]:
    """Return the devices whose ops are to be named: the CPUs where there are GPUs, else all but the busiest.

    >>> sorted(choose_named({"/device:CPU:0": 1, "/device:GPU:0": 5, "/device:GPU:1": 4}))
    ['/device:CPU:0']
    """
    order = order_devices(counts)
    has_gpus = any("/device:GPU:" in device for device in order)
    return frozenset(device for device in order[1:] if not has_gpus or "/device:CPU:" in device)


def order_devices(counts: Mapping[str, int]) -> list[str]:
    """Return devices, that with most ops first."""
    return sorted(counts, key=lambda device: (-counts[device], device))


def _count(ops: Iterable[RanOps]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for each in ops:
        counts[each.device] += each.count
    return counts
