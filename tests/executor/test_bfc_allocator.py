"""TensorFlow's allocator: what fits where, and that nothing overlaps or is lost."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from simplace.executor.bfc_allocator import GRAIN, BfcAllocator, round_up

LIMIT = 64 * GRAIN
# A size to allocate, or -n to free the nth of those that are allocated.
CALLS = st.lists(st.one_of(st.integers(1, 20 * GRAIN), st.integers(-10, -1)), max_size=60)


def test_the_smallest_free_chunk_that_is_large_enough_is_taken() -> None:
    memory = BfcAllocator(LIMIT, growth=False)
    large, _, small, _ = (memory.allocate(count * GRAIN) for count in (8, 1, 4, 1))
    memory.free(large or 0)
    memory.free(small or 0)
    assert memory.allocate(3 * GRAIN) == small
    assert memory.in_use == 6 * GRAIN  # a chunk less than twice as large is not split


def test_free_memory_in_pieces_is_no_room_for_more_than_the_largest() -> None:
    memory = BfcAllocator(LIMIT, growth=False)
    chunks = [memory.allocate(16 * GRAIN) for _ in range(4)]
    memory.free(chunks[0] or 0)
    memory.free(chunks[2] or 0)
    assert (memory.free_bytes, memory.largest_free) == (32 * GRAIN, 16 * GRAIN)
    assert memory.allocate(17 * GRAIN) is None
    memory.free(chunks[1] or 0)
    assert memory.allocate(48 * GRAIN) == chunks[0]


def test_memory_that_grows_doubles_its_regions() -> None:
    memory = BfcAllocator(100 << 20, growth=True)
    for size, reserved in ((1, 2), (3 << 20, 6), (1 << 20, 6), (5 << 20, 14), (80 << 20, 100)):
        assert memory.allocate(size) is not None
        assert memory.reserved == reserved << 20
    assert memory.allocate(40 << 20) is None


@given(calls=CALLS, growth=st.booleans())
def test_chunks_do_not_overlap_and_come_back_whole(calls: list[int], growth: bool) -> None:
    memory = BfcAllocator(LIMIT, growth)
    held: dict[int, int] = {}
    for call in calls:
        if call < 0:
            if held:
                address = sorted(held)[call % len(held)]
                memory.free(address)
                del held[address]
            continue
        largest = memory.largest_free
        address = memory.allocate(call)
        assert (address is None) == (round_up(call) > largest)
        if address is not None:
            held[address] = call
    ends = sorted((address, address + round_up(size)) for address, size in held.items())
    assert all(end <= start for (_, end), (start, _) in pairwise(ends))
    assert sum(map(round_up, held.values())) <= memory.in_use <= min(memory.peak, LIMIT)
    for address in held:
        memory.free(address)
    assert (memory.in_use, memory.largest_free) == (0, LIMIT)
