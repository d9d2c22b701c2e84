"""Allocate the memory of a step as TensorFlow's allocator does: where it has no room, and the smallest limit.

What ran before the step leaves holes, where it is known.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from simplace.executor.bfc_allocator import GRAIN, BfcAllocator, round_up
from simplace.executor.trace import MemoryChange
from simplace.program.allocation_log import Allocation

Tensor = tuple[int, int]  # a node of the partitioned graph and the slot of its output
Resident = Sequence[tuple[Tensor, int]]  # the bytes of what is there before a step begins
_PRECISION = 1000  # parts of a limit that one is searched to
_COPIED = 2  # times that TensorFlow copies a constant which it has folded
_MB = 1 << 20
_BEFORE = -1  # the number of a change that is no change of the step


@dataclass(frozen=True)
class MemoryBefore:
    """Record of the memory of a device as the step begins: `allocations` made it so, () where that is not known.

    With `grows` the allocator takes regions from the device as they are needed, as on CPUs, otherwise all at once.
    `constants` are the nodes whose tensors are made with the kernels of the step; `folded` are those of them that
    TensorFlow computes first.
    """

    allocations: tuple[Allocation, ...] = ()
    grows: bool = False
    constants: frozenset[int] = frozenset()
    folded: frozenset[int] = frozenset()


AT_ONCE = MemoryBefore()


@dataclass(frozen=True, slots=True)
class Shortage:
    """Record of the change, by number, that found no room; -1 for what is there before the step begins.

    `node` is -1 for what the program did before.
    """

    number: int
    node: int
    largest_free: int


@dataclass(frozen=True, slots=True)
class _Request:
    """Record of an allocation of `size` bytes, 0 to free it; `change` and `node` say where a shortage is."""

    chunk: int
    size: int
    change: int
    node: int


@dataclass(frozen=True)
class Replay:
    """Record of the requests that an allocator gets before and during a step."""

    requests: tuple[_Request, ...]
    grows: bool

    @classmethod
    def of(cls, permanent: Resident, changes: Sequence[MemoryChange], before: MemoryBefore = AT_ONCE) -> Replay:
        """Begin with what was before, in which arguments and variables are found by their size, the oldest first.

        One more than there are is the same memory as another. Constants are allocated as the step begins, and so is all
        where nothing is known of what was before.
        """
        return cls(tuple(_list_requests(permanent, changes, before)), before.grows)

    def find_shortage(self, limit: int) -> Shortage | None:
        """Return where an allocator of so many bytes first has no room, None if all fits."""
        memory, addresses = BfcAllocator(limit, growth=self.grows), dict[int, int]()
        for request in self.requests:
            if not request.size:
                memory.free(addresses.pop(request.chunk))
                continue
            address = memory.allocate(request.size)
            if address is None:
                return Shortage(request.change, request.node, memory.largest_free)
            addresses[request.chunk] = address
        return None

    def find_smallest_limit(self, limit: int = 0) -> int:
        """Return the bytes with which all fits, to one part in a thousand; at most `limit` only if that suffices.

        Where regions are taken as they are needed, a limit is a whole number of MB.
        """
        unit = _MB if self.grows else GRAIN
        low = -(-self._find_peak() // unit)
        if self._suffices(low * unit):
            return low * unit
        high = limit // unit if limit > low * unit and self._suffices(limit) else 0
        if limit > low * unit and not high:
            low = limit // unit
        step = max(low // 16, 1)
        while not high:
            low, high = (low, low + step) if self._suffices((low + step) * unit) else (low + step, 0)
            step *= 2
        while high - low > max(high // _PRECISION, 1):
            middle = (low + high) // 2
            low, high = (low, middle) if self._suffices(middle * unit) else (middle, high)
        return high * unit

    def _suffices(self, limit: int) -> bool:
        return self.find_shortage(limit) is None

    def _find_peak(self) -> int:
        """Return the most bytes at once, of chunks that are no larger than they have to be."""
        now, peak, sizes = 0, 0, dict[int, int]()
        for request in self.requests:
            if request.size:
                sizes[request.chunk] = round_up(request.size)
                now += sizes[request.chunk]
                peak = max(peak, now)
            else:
                now -= sizes.pop(request.chunk)
        return peak


def _list_requests(permanent: Resident, changes: Sequence[MemoryChange], before: MemoryBefore) -> Iterator[_Request]:
    for one in before.allocations:
        yield _Request(one.number, one.size, _BEFORE, -1)
    found = _FoundBySize(before.allocations)
    fresh = iter(range(max((one.number for one in before.allocations), default=0) + 1, 1 << 62))
    yield from _fold([size for (node, _), size in permanent if node in before.folded], fresh)
    uses: Counter[int] = Counter()
    places: defaultdict[Tensor, list[int]] = defaultdict(list)
    for tensor, size in permanent:
        chunk = 0 if tensor[0] in before.constants else found.take(size)
        if not chunk:
            chunk = next(fresh)
            yield _Request(chunk, max(size, 1), _BEFORE, tensor[0])
        uses[chunk] += 1
        places[tensor].append(chunk)
    for number, change in enumerate(changes):
        chunks = places[change.node, change.slot]
        if change.change > 0:
            chunks.append(next(fresh))
            uses[chunks[-1]] = 1
            yield _Request(chunks[-1], change.change, number, change.node)
        elif change.change < 0:
            chunk = chunks.pop(0)
            uses[chunk] -= 1
            if not uses[chunk]:
                yield _Request(chunk, 0, number, change.node)


def _fold(sizes: Sequence[int], fresh: Iterator[int]) -> Iterator[_Request]:
    """Compute constants and copy them, then read the copies from the graph and copy them again.

    Mirrors `EvaluateConstantTensors` and `ReplaceTensorWithConstant` of common_runtime/constant_folding.cc.
    """
    for _ in range(_COPIED):
        chunks = [[(next(fresh), size) for size in sizes] for _ in ("computed or read", "copied")]
        for made in chunks:
            yield from (_Request(chunk, size, _BEFORE, -1) for chunk, size in made)
        for made in chunks:
            yield from (_Request(chunk, 0, _BEFORE, -1) for chunk, _ in made)


class _FoundBySize:
    """The chunks that are in use when a step begins, by what was requested."""

    def __init__(self, before: Sequence[Allocation]) -> None:
        alive: dict[int, int] = {}
        for one in before:
            if one.size:
                alive[one.number] = one.size
            else:
                del alive[one.number]
        self._left: defaultdict[int, list[int]] = defaultdict(list)
        for number, size in alive.items():
            self._left[size].append(number)

    def take(self, size: int) -> int:
        """Return the oldest chunk of a size that was not taken, or else the one taken last; 0 where there was none."""
        left = self._left.get(size)
        if not left:
            return 0
        return left.pop(0) if len(left) > 1 else left[0]
