"""What TensorLists hold: an element that was put into a list stays in memory until it is taken out, or the list ends.

So the values that a loop keeps for its gradient (while_v2.py pushes them, round after round) are alive together.
Mirrors tensorflow/core/kernels/list_kernels.cc and tensor_list.h: a list refers to its elements' tensors, copying none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from simplace.executor.variable_memory import Buffer

NEW = frozenset({"EmptyTensorList", "TensorListReserve"})
_PUT = {"TensorListPushBack": 1, "TensorListSetItem": 2, "TensorListFromTensor": 0}  # the number of the input
_POP, _GET, _RESIZE = "TensorListPopBack", "TensorListGetItem", "TensorListResize"
LIST_OPS = NEW.union(_PUT, (_POP, _GET, _RESIZE))


@dataclass(slots=True, eq=False)
class ListBuffer(Buffer):
    """Record of a list, which has no memory of its own; it holds one use of each of its `items`.

    None is an item in memory that others account for, such as an argument's.
    """

    items: list[Buffer | None] = field(default_factory=list)


def compute_list(
    op: str, inputs: Mapping[int, object], allocate: Callable[[int], Buffer | None]
) -> list[Buffer | None]:
    """Return the outputs of an op of `LIST_OPS`; `allocate` makes an output, by its number, in memory of its own.

    Which element an index means is not known here: the last one is taken, since all have one shape, as a rule.
    """
    if op == _GET:
        known = inputs.get(0)
        if not isinstance(known, ListBuffer) or not known.items:
            return [allocate(0)]
        return [_use(known.items[-1])]
    made = ListBuffer("", 0, -1, 0) if op in NEW or op == "TensorListFromTensor" else _take_over(inputs.get(0))
    if op == _POP:
        return [made, made.items.pop() if made.items else allocate(1)]
    if op in _PUT:
        item = inputs.get(_PUT[op])
        made.items.append(_use(item if isinstance(item, Buffer) else None))
    return [made]


def _use(item: Buffer | None) -> Buffer | None:
    """Return an item with one more use."""
    if item is not None:
        item.uses += 1
    return item


def _take_over(given: object) -> ListBuffer:
    """Return a list with the items of another, which loses them where nobody else needs it."""
    made = ListBuffer("", 0, -1, 0)
    if isinstance(given, ListBuffer) and given.uses == 1:
        made.items, given.items = given.items, made.items
    elif isinstance(given, ListBuffer):
        made.items = [_use(item) for item in given.items]
    return made
