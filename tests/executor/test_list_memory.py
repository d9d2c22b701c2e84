"""What a list holds stays in memory: the values that a loop keeps for its gradient are alive together."""

from __future__ import annotations

from simplace.executor.list_memory import ListBuffer, compute_list
from simplace.executor.variable_memory import Buffer


def tensor() -> Buffer:
    return Buffer("CPU:0", 8, 0, 0)


def refuse(slot: int) -> Buffer | None:
    raise AssertionError(f"output {slot} is not in memory of its own")


def put(known: ListBuffer, item: Buffer | None) -> ListBuffer:
    (made,) = compute_list("TensorListPushBack", {0: known, 1: item}, refuse)
    assert isinstance(made, ListBuffer)
    return made


def test_a_list_holds_what_was_pushed_until_it_is_popped() -> None:
    first, last = tensor(), tensor()
    (empty,) = compute_list("EmptyTensorList", {}, refuse)
    assert isinstance(empty, ListBuffer)
    held = put(put(empty, first), last)
    assert (first.uses, last.uses, empty.items) == (2, 2, [])
    left, popped = compute_list("TensorListPopBack", {0: held}, refuse)
    assert isinstance(left, ListBuffer)
    assert (popped, popped.uses if popped else 0, left.items) == (last, 2, [first])


def test_a_list_that_others_need_keeps_its_items() -> None:
    item = tensor()
    known = put(ListBuffer("", 0, -1, 0), item)
    known.uses += 1
    more = put(known, None)
    assert (known.items, more.items, item.uses) == ([item], [item, None], 3)


def test_an_element_is_read_where_it_is() -> None:
    item = tensor()
    (known,) = compute_list("TensorListFromTensor", {0: item}, refuse)
    assert compute_list("TensorListGetItem", {0: known}, refuse) == [item]
    assert item.uses == 3


def test_an_element_that_is_not_known_has_memory_of_its_own() -> None:
    own = tensor()
    (reserved,) = compute_list("TensorListReserve", {}, refuse)
    assert compute_list("TensorListGetItem", {0: reserved}, lambda slot: own) == [own]
    assert compute_list("TensorListPopBack", {0: reserved}, lambda slot: own)[1] is own
    assert compute_list("TensorListGetItem", {}, lambda slot: own) == [own]
