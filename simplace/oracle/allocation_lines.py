"""Read from TensorFlow's log what it allocated and freed in host memory.

The lines come of VLOG(3) in tsl/framework/bfc_allocator.cc, and of VLOG(2) in framework/log_memory.cc, which tells
which tensor is about to be freed: the allocator itself tells only its size. Tensors are known by the number of their
allocation (framework/tracking_allocator.cc), which counts them from 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from math import prod

from simplace.oracle.placement_log import Instantiating, read_line
from simplace.program.allocation_log import Allocation, AllocationLog

VLOG = "bfc_allocator=3,log_memory=2"
_ALLOCATOR = "bfc_cpu_allocator_for_gpu"
_THREAD = r"^[IWEF]\S+ \S+ +(?P<thread>\d+) "
_ALLOCATED = re.compile(rf"{_THREAD}.*\] AllocateRaw {_ALLOCATOR}  (?P<size>\d+) 0x")
_FREED = re.compile(rf"{_THREAD}.*\] DeallocateRaw {_ALLOCATOR} (?P<size>\d+)$")
_NAMED = re.compile(rf"{_THREAD}.*LogTensor\w+ .*allocation_id: (?P<number>\d+).*allocator_name: \"{_ALLOCATOR}\"")
_NAMED_LAST = re.compile(rf"{_THREAD}.*LogTensor\w+ .*allocator_name: \"{_ALLOCATOR}\" allocation_id: (?P<number>\d+)")
_OUTPUT = re.compile(
    r'MemoryLogTensorOutput .*?kernel_name: "(?P<kernel>[^"]+)"(?: index: (?P<index>\d+))? tensor \{ '
    r"dtype: \w+ shape \{(?P<dims>(?: dim \{(?: size: \d+)? \})*) ?\}"
)
_DIM = re.compile(r"dim \{(?: size: (\d+))? \}")


def read_allocations(lines: Iterable[str]) -> AllocationLog:
    """Return what a log says of host memory, nothing where TensorFlow was not set to log it.

    >>> at = "I0000 00:00:17.5   7 bfc_allocator.cc:1] "
    >>> read_allocations([at + "AllocateRaw bfc_cpu_allocator_for_gpu  40 0x7f", at + "DeallocateRaw "
    ...     "bfc_cpu_allocator_for_gpu 40"]).allocations
    (Allocation(number=1, size=40), Allocation(number=1, size=0))
    """
    chunks = _Chunks()
    calls: dict[str, int] = {}
    shapes: dict[tuple[str, int], tuple[int, ...]] = {}
    for line in lines:
        if "AllocateRaw" in line or "DeallocateRaw" in line:
            chunks.follow(line)
        elif "LogTensor" in line:
            chunks.name(line)
            if found := _OUTPUT.search(line):
                key = found["kernel"], int(found["index"] or 0)
                shape = tuple(int(size or 0) for size in _DIM.findall(found["dims"]))
                shapes[key] = max(shapes.get(key, shape), shape, key=prod)
        elif "Instantiating" in line and isinstance(begun := read_line(line), Instantiating):
            calls.setdefault(begun.function, len(chunks.found))
    return AllocationLog(tuple(chunks.found), calls, shapes)


class _Chunks:
    """The chunks in use, by size, as the log goes on."""

    def __init__(self) -> None:
        self.found: list[Allocation] = []
        self._allocated = 0
        self._sizes: dict[int, int] = {}  # of what is in use, by number
        self._of_size: dict[int, dict[int, None]] = {}  # the numbers in use, the latest last
        self._tensors: set[int] = set()
        self._about_to_free: dict[str, int] = {}  # by thread

    def follow(self, line: str) -> None:
        """Record that a chunk was allocated or freed."""
        if found := _ALLOCATED.match(line):
            self._allocated += 1
            self._allocate(self._allocated, int(found["size"]))
        elif (found := _FREED.match(line)) and int(found["size"]):
            self._free(self._choose(found["thread"], int(found["size"])))

    def name(self, line: str) -> None:
        """Record that a chunk is a tensor's, and that a thread is about to free it."""
        found = _NAMED.match(line) or _NAMED_LAST.match(line)
        if found is None:
            return
        if "LogTensorDeallocation" in line:
            self._about_to_free[found["thread"]] = int(found["number"])
        else:
            self._tensors.add(int(found["number"]))

    def _allocate(self, number: int, size: int) -> None:
        self._sizes[number] = size
        self._of_size.setdefault(size, {})[number] = None
        self.found.append(Allocation(number, size))

    def _free(self, number: int) -> None:
        if number:
            del self._of_size[self._sizes.pop(number)][number]
            self.found.append(Allocation(number, 0))

    def _choose(self, thread: str, size: int) -> int:
        """Return the number of the chunk that is freed: the tensor named just before, or else the latest chunk.

        What a kernel takes besides tensors is freed when it ends. 0 is for one that was allocated before the log began.
        """
        number = self._about_to_free.pop(thread, 0)
        if self._sizes.get(number) == size:
            return number
        alive = list(self._of_size.get(size, ()))
        return next((one for one in reversed(alive) if one not in self._tensors), alive[-1] if alive else 0)
