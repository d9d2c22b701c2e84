"""What a list holds stays in memory: the values that a loop keeps for its gradient are alive together."""

from __future__ import annotations

from simplace.costs.cost_model import Tensor
from simplace.executor.list_memory import ListBuffer, ListCall, ListMemory, compute_list, is_about_lists
from simplace.executor.variable_memory import Buffer

HANDLE = Tensor("variant", (), 0)
ROW = Tensor("float32", (2,), 8)


def tensor(size: int = 8) -> Buffer:
    return Buffer("CPU:0", size, 0, 0)


class World:
    """Computes lists, and keeps what was allocated for them."""

    def __init__(self) -> None:
        self.made: list[Buffer] = []

    def allocate(self, slot: int, size: int) -> Buffer:
        self.made.append(Buffer("CPU:0", size, 0, slot))
        return self.made[-1]

    def release(self, buffer: Buffer | None) -> None:
        if buffer is not None:
            buffer.uses -= 1

    def compute(
        self, op: str, *inputs: object, given: Tensor = HANDLE, length: int | None = None
    ) -> list[Buffer | None]:
        call = ListCall(f"TensorList{op}", dict(enumerate(inputs)), [given], [HANDLE, ROW], length)
        if op in ("EmptyTensorList", "AddN", "ZerosLike", "OptionalFromValue", "OptionalGetValue"):
            call = ListCall(op, call.inputs, call.given, call.outputs)
        return compute_list(call, ListMemory(self.allocate, self.release))

    def make(self, op: str, *inputs: object, given: Tensor = HANDLE, length: int | None = None) -> ListBuffer:
        made = self.compute(op, *inputs, given=given, length=length)[0]
        assert isinstance(made, ListBuffer)
        return made

    def push(self, known: ListBuffer, *items: Buffer | None) -> ListBuffer:
        for item in items:
            known = self.make("PushBack", known, item)
        return known


def test_a_list_holds_what_was_pushed_until_it_is_popped() -> None:
    world, first, last = World(), tensor(), tensor()
    held = world.push(world.make("EmptyTensorList"), first, last)
    assert (first.uses, last.uses) == (2, 2)
    left, popped = world.compute("PopBack", held)
    assert isinstance(left, ListBuffer)
    assert (popped, popped.uses if popped else 0, left.items) == (last, 2, [first])
    assert not world.made


def test_a_list_that_others_need_keeps_its_items() -> None:
    world, item = World(), tensor()
    known = world.push(ListBuffer("", 0, -1, 0), item)
    known.uses += 1
    more = world.push(known, None)
    assert (known.items, more.items, item.uses) == ([item], [item, None], 3)


def test_an_optional_holds_what_it_is_made_of() -> None:
    world, item, other = World(), tensor(), tensor()
    call = ListCall("OptionalFromValue", {0: item, 1: other}, [ROW, ROW], [HANDLE])
    (known,) = compute_list(call, ListMemory(world.allocate, world.release))
    assert world.compute("OptionalGetValue", known) == [item, other]
    assert (item.uses, other.uses, world.made) == (3, 3, [])
    world.compute("OptionalGetValue", None)  # one that nobody followed
    assert [made.size for made in world.made] == [HANDLE.size, ROW.size]


def test_rows_of_a_tensor_are_copied_and_read_one_after_the_other() -> None:
    world = World()
    known = world.make("FromTensor", None, given=Tensor("float32", (3, 2), 24))
    assert [row.size for row in world.made] == [8, 8, 8]
    read = [world.compute("GetItem", known)[0] for _ in range(4)]
    assert read == [*world.made, world.made[0]]
    assert [row.uses for row in world.made] == [3, 2, 2]


def test_in_a_full_list_an_item_is_replaced() -> None:
    world, item = World(), tensor()
    known = world.make("FromTensor", None, given=Tensor("float32", (2, 2), 16))
    known = world.make("SetItem", known, None, item)
    assert known.items == [item, world.made[1]]
    assert [row.uses for row in world.made] == [0, 1]


def test_reserved_elements_take_memory_when_they_are_written() -> None:
    world, first, second = World(), tensor(), tensor()
    known = world.make("SetItem", world.make("Reserve", length=2), None, first)
    assert known.items == [first]
    known = world.make("SetItem", world.make("SetItem", known, None, second), None, second)
    assert known.items == [second, second]
    assert (first.uses, second.uses) == (1, 3)


def test_the_sum_of_lists_allocates_what_both_have() -> None:
    world, item = World(), tensor()
    rows = world.make("FromTensor", None, given=Tensor("float32", (2, 2), 16))
    one = world.make("SetItem", world.make("Reserve", length=2), None, item)
    both = world.make("AddN", rows, one)
    assert [row.size for row in world.made] == [8, 8, 8]
    assert both.items == world.made[1:]
    assert [row.uses for row in world.made] == [1, 2, 1]
    other = world.make("SetItem", world.make("Reserve", length=2), None, tensor())
    assert world.make("AddN", one, other).items == [item, *other.items]


def test_only_variants_are_lists() -> None:
    assert [is_about_lists("AddN", given) for given in ([HANDLE, HANDLE], [ROW, ROW], [])] == [True, False, False]
    assert is_about_lists("TensorListReserve", [ROW])


def test_lists_that_are_not_known_add_up_to_what_is() -> None:
    world, item = World(), tensor()
    call = ListCall("AddN", {1: world.push(ListBuffer("", 0, -1, 0), item)}, [HANDLE, HANDLE], [HANDLE])
    (both,) = compute_list(call, ListMemory(world.allocate, world.release))
    assert isinstance(both, ListBuffer)
    assert both.items == [item]


def test_zeros_like_a_list_are_as_many() -> None:
    world = World()
    known = world.push(ListBuffer("", 0, -1, 0), tensor(4), tensor(12))
    assert world.make("ZerosLike", known).items == world.made
    assert [zeros.size for zeros in world.made] == [4, 12]


def test_an_element_that_is_not_known_has_memory_of_its_own() -> None:
    world = World()
    reserved = world.make("Reserve", length=2)
    assert world.compute("PopBack", reserved)[1] is world.made[-1]
    for known in (reserved, None):
        call = ListCall("TensorListGetItem", {0: known}, [HANDLE], [ROW])
        assert compute_list(call, ListMemory(world.allocate, world.release)) == [world.made[-1]]
