"""TensorFlow's allocator: best fit with coalescing, in regions that are taken from the device.

Mirrors tsl/framework/bfc_allocator.cc. Its bins only make the search quicker: what it finds is the smallest free chunk
that is large enough, of equal ones that at the lowest address.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass, field

GRAIN = 256  # bytes: each size is a multiple of it (kMinAllocationSize)
_FIRST_REGION = 2 << 20  # bytes of the first region where memory grows
_MOST_PADDING = 128 << 20  # bytes of a chunk that may stay unused before it is split
_GAP = 1 << 50  # between the addresses of two regions: chunks never join across
_TOP = 1 << 80  # where the first region begins, below which lie the later ones, as Linux maps memory


def round_up(size: int) -> int:
    """Return the bytes that an allocation of so many takes at least.

    >>> round_up(1), round_up(256), round_up(257)
    (256, 256, 512)
    """
    return -(-size // GRAIN) * GRAIN


@dataclass(slots=True)
class _Chunk:
    """Record of a piece of a region: `before` and `after` are the addresses of its neighbours, -1 for none."""

    size: int
    before: int
    after: int
    is_used: bool = False


@dataclass
class BfcAllocator:
    """Allocate and free up to `limit` bytes; with `growth` regions are taken as they are needed.

    `in_use` counts the bytes of chunks that are in use, as TensorFlow's statistics do: with what they are larger than
    what was asked for. `reserved` counts those of the regions, `peak` is the most that was in use.

    >>> memory = BfcAllocator(limit=1024, growth=False)
    >>> a, b = memory.allocate(300), memory.allocate(256)
    >>> memory.in_use, memory.allocate(512)
    (768, None)
    >>> memory.free(a)
    >>> memory.in_use, memory.largest_free, memory.free_bytes
    (256, 512, 768)
    """

    limit: int
    growth: bool
    in_use: int = 0
    peak: int = 0
    reserved: int = 0
    _next_region: int = 0
    _regions: int = 0
    _chunks: dict[int, _Chunk] = field(default_factory=dict)
    _free: list[tuple[int, int]] = field(default_factory=list)  # (size, address), sorted

    def __post_init__(self) -> None:
        self._next_region = round_up(min(self.limit, _FIRST_REGION) if self.growth else self.limit)

    @property
    def free_bytes(self) -> int:
        """Return the bytes that are not in use, in regions or not."""
        return self.limit - self.in_use

    @property
    def largest_free(self) -> int:
        """Return the bytes of the largest chunk that is free, or of the region that could still be taken."""
        unreserved = (self.limit - self.reserved) // GRAIN * GRAIN
        return max(unreserved, self._free[-1][0] if self._free else 0)

    def allocate(self, size: int) -> int | None:
        """Return the address of a chunk of at least so many bytes, None where there is no room."""
        wanted = round_up(max(size, 1))
        place = bisect_left(self._free, (wanted, -1))
        if place == len(self._free):
            if not self._extend(wanted):
                return None
            place = bisect_left(self._free, (wanted, -1))
        found, address = self._free.pop(place)
        chunk = self._chunks[address]
        if found >= 2 * wanted or found - wanted >= _MOST_PADDING:
            self._split(address, chunk, wanted)
        chunk.is_used = True
        self.in_use += chunk.size
        self.peak = max(self.peak, self.in_use)
        return address

    def free(self, address: int) -> None:
        """Free a chunk, and join it with its neighbours that are free."""
        chunk = self._chunks[address]
        chunk.is_used = False
        self.in_use -= chunk.size
        if chunk.after >= 0 and not self._chunks[chunk.after].is_used:
            self._take_out(chunk.after)
            self._join(address)
        if chunk.before >= 0 and not self._chunks[chunk.before].is_used:
            address = chunk.before
            self._take_out(address)
            self._join(address)
        insort(self._free, (self._chunks[address].size, address))

    def _extend(self, wanted: int) -> bool:
        """Take another region from the device (`Extend`)."""
        available = (self.limit - self.reserved) // GRAIN * GRAIN
        if wanted > available:
            return False
        is_enough = wanted <= self._next_region
        while wanted > self._next_region:
            self._next_region *= 2
        size = min(self._next_region, available)
        if is_enough:
            self._next_region *= 2
        address = _TOP - self._regions * _GAP
        self._regions += 1
        self.reserved += size
        self._chunks[address] = _Chunk(size, -1, -1)
        insort(self._free, (size, address))
        return True

    def _split(self, address: int, chunk: _Chunk, size: int) -> None:
        rest = address + size
        self._chunks[rest] = _Chunk(chunk.size - size, address, chunk.after)
        if chunk.after >= 0:
            self._chunks[chunk.after].before = rest
        chunk.size, chunk.after = size, rest
        insort(self._free, (self._chunks[rest].size, rest))

    def _join(self, address: int) -> None:
        """Join a chunk with the one after it."""
        chunk = self._chunks[address]
        gone = self._chunks.pop(chunk.after)
        chunk.size, chunk.after = chunk.size + gone.size, gone.after
        if gone.after >= 0:
            self._chunks[gone.after].before = address

    def _take_out(self, address: int) -> None:
        self._free.pop(bisect_left(self._free, (self._chunks[address].size, address)))
