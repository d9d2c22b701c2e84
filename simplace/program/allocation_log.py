"""What TensorFlow allocated and freed in host memory during a run, in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Allocation:
    """Record that a chunk was allocated: `number` tells it from all others, `size` is what was requested, in bytes.

    A `size` of 0 records that the chunk was freed.
    """

    number: int
    size: int


@dataclass(frozen=True)
class AllocationLog:
    """Record of what the allocator of host memory did; `calls` maps a function to what came before its first call.

    `shapes` are those of what kernels put out, by kernel and output: the largest, where there were several.
    """

    allocations: tuple[Allocation, ...] = ()
    calls: Mapping[str, int] = field(default_factory=dict)
    shapes: Mapping[tuple[str, int], tuple[int, ...]] = field(default_factory=dict)

    def before(self, function: str | None) -> tuple[Allocation, ...]:
        """Return what came before the first call of a function, () where none was seen.

        >>> log = AllocationLog((Allocation(1, 8), Allocation(2, 4)), {"f": 1})
        >>> log.before("f"), log.before("g")
        ((Allocation(number=1, size=8),), ())
        """
        return self.allocations[: self.calls.get(function or "", 0)]
