"""What was before a step, and the smallest limit that it runs in."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from simplace.analysis.memory_replay import MemoryBefore, Replay
from simplace.executor.bfc_allocator import GRAIN
from simplace.executor.trace import PERMANENT, MemoryChange
from simplace.program.allocation_log import Allocation

MB = 1 << 20
VARIABLE, STEP = (0, PERMANENT), (1, 0)


def change(size: int, tensor: tuple[int, int] = STEP) -> MemoryChange:
    return MemoryChange(0, "/device:CPU:0", size, *tensor, span=0)


def test_holes_that_the_program_left_are_no_room_for_what_is_larger() -> None:
    hole = Allocation(1, 2 * MB), Allocation(2, GRAIN), Allocation(1, 0)
    step = [change(3 * MB), change(-3 * MB)]
    assert Replay.of([], step).find_smallest_limit() == 3 * MB
    assert Replay.of([], step, MemoryBefore(hole)).find_smallest_limit() >= 5 * MB


def test_a_variable_is_where_the_program_made_it() -> None:
    before = MemoryBefore((Allocation(1, MB), Allocation(2, MB), Allocation(1, 0)))
    replay = Replay.of([(VARIABLE, MB)], [change(-MB, VARIABLE), change(2 * MB)], before)
    assert replay.find_shortage(2 * MB) is None  # freed with the step's change, beside the hole


def test_two_arguments_of_one_tensor_are_in_memory_once() -> None:
    before = MemoryBefore((Allocation(1, MB),))
    assert Replay.of([((0, PERMANENT), MB), ((2, PERMANENT), MB)], [], before).find_smallest_limit() == MB
    assert Replay.of([((0, PERMANENT), MB), ((2, PERMANENT), MB)], []).find_smallest_limit() == 2 * MB


def test_folded_constants_are_copied_before_the_step() -> None:
    folded = MemoryBefore(constants=frozenset({0}), folded=frozenset({0}))
    assert Replay.of([(VARIABLE, MB)], [], folded).find_smallest_limit() == 2 * MB


def test_a_shortage_names_the_change() -> None:
    replay = Replay.of([], [change(MB), change(2 * MB, (5, 0))])
    found = replay.find_shortage(2 * MB)
    assert found is not None
    assert (found.number, found.node, found.largest_free) == (1, 5, MB)


@given(st.lists(st.integers(1, 9 * MB), max_size=20), st.booleans())
def test_all_fits_in_the_smallest_limit(sizes: list[int], grows: bool) -> None:
    held = [change(size, (i, 0)) for i, size in enumerate(sizes)]
    steps = held + [change(-one.change, (one.node, 0)) for one in held[::2]] + [change(MB, (99, 0))]
    replay = Replay.of([], steps, MemoryBefore(grows=grows))
    smallest = replay.find_smallest_limit()
    assert replay.find_shortage(smallest) is None
    assert smallest >= sum(sizes)
