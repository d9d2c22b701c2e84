"""What TensorLists hold: an element that was put into a list stays in memory until it is taken out, or the list ends.

So the values that a loop keeps for its gradient (while_v2.py pushes them, round after round) are alive together. An
optional, as a branch keeps values in for its gradient (cond_v2.py), is a list of what it is made of. Mirrors
tensorflow/core/kernels/list_kernels.h, tensor_list.h, tensor_list_util.cc and data/optional_ops.cc: a list refers to
its elements' tensors; rows of a tensor that is made into a list are copied, each into memory of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from simplace.costs.cost_model import Tensor
from simplace.executor.variable_memory import Buffer

RESERVE = "TensorListReserve"


@dataclass(slots=True, eq=False)
class ListBuffer(Buffer):
    """Record of a list, which has no memory of its own; it holds one use of each of its `items`.

    None is an item in memory that others account for, such as an argument's. `length` counts the elements of a list
    that has as many from the beginning, some of them not in memory yet; None: it grows, or nothing tells. `reads` and
    `writes` count since all have been in memory.
    """

    items: list[Buffer | None] = field(default_factory=list)
    length: int | None = None
    reads: int = 0
    writes: int = 0

    @property
    def is_full(self) -> bool:
        """Return whether all elements are in memory."""
        return len(self.items) == self.length


class ListMemory(NamedTuple):
    """Record of how an op allocates so many bytes for the output of a number, and drops one use of a buffer."""

    allocate: Callable[[int, int], Buffer | None]
    release: Callable[[Buffer | None], None]


@dataclass(frozen=True)
class ListCall:
    """Record of what an op that is about lists is given, in memory and as tensors, by input, and what it puts out.

    `length` is how many elements it reserves, None where nothing tells.
    """

    op: str
    inputs: Mapping[int, object]
    given: Sequence[Tensor]
    outputs: Sequence[Tensor]
    length: int | None = None


def is_about_lists(op: str, given: Sequence[Tensor]) -> bool:
    """Return whether an op makes lists, or computes something of what it is given, which may be lists."""
    return op in _RULES and (op not in _OF_NUMBERS_TOO or (bool(given) and given[0].dtype == "variant"))


def compute_list(call: ListCall, memory: ListMemory) -> list[Buffer | None]:
    """Return the outputs of an op that is about lists.

    Which element an index means is not known here: a full list is taken to be read, and written, one after the other,
    as loops do; of any other the last element is read, and each that is written is a new one.
    """
    return _RULES[call.op](call, memory)


def _begin(call: ListCall, memory: ListMemory) -> list[Buffer | None]:
    return [_begin_list(call)]


def _begin_list(call: ListCall) -> ListBuffer:
    """Return the list that is given, or an empty one, with as many elements as it is to have."""
    made = _take_over(call.inputs.get(0))
    made.length = call.length or None  # an array of no elements grows
    return made


def _push(call: ListCall, memory: ListMemory) -> list[Buffer | None]:
    made = _begin_list(call)
    _put(made, _use_input(call, 1), memory)
    return [made]


def _set(call: ListCall, memory: ListMemory) -> list[Buffer | None]:
    made = _take_over(call.inputs.get(0))
    _put(made, _use_input(call, 2), memory)
    return [made]


def _put_rows(call: ListCall, memory: ListMemory) -> list[Buffer | None]:
    """Return a list with copies of the rows of a tensor; an empty one that was folded is taken to have no others."""
    made, rows = _take_over(call.inputs.get(0)), _split(call.given[1], memory)
    if made.length is None and not made.items:
        made.length = rows.length
    for item in rows.items:
        _put(made, item, memory)
    return [made]


def _pop(call: ListCall, memory: ListMemory) -> list[Buffer | None]:
    made = _begin_list(call)
    return [made, made.items.pop() if made.items else memory.allocate(1, call.outputs[1].size)]


def _wrap(call: ListCall, memory: ListMemory) -> list[Buffer | None]:
    return [_make([_use_input(call, i) for i in range(len(call.given))], len(call.given))]


def _unwrap(call: ListCall, memory: ListMemory) -> list[Buffer | None]:
    known = call.inputs.get(0)
    held = known.items if isinstance(known, ListBuffer) else ()
    sizes = [tensor.size for tensor in call.outputs]
    return [_use(held[i]) if i < len(held) else memory.allocate(i, size) for i, size in enumerate(sizes)]


def _make_of_rows(call: ListCall, memory: ListMemory) -> list[Buffer | None]:
    return [_split(call.given[0], memory)]


def _make_of_parts(call: ListCall, memory: ListMemory) -> list[Buffer | None]:
    """Return a list with copies of parts of a tensor, one for each length that is given."""
    parts = call.given[2].shape[0] if call.given[2].shape else 0
    return [_make([memory.allocate(0, call.given[0].size // parts) for _ in range(parts)], parts or None)]


def _sum(call: ListCall, memory: ListMemory) -> list[Buffer | None]:
    return [_add([each for each in call.inputs.values() if isinstance(each, ListBuffer)], memory)]


def _make_zeros(call: ListCall, memory: ListMemory) -> list[Buffer | None]:
    known = call.inputs.get(0)
    if not isinstance(known, ListBuffer):
        return _begin(call, memory)
    zeros = [None if item is None else memory.allocate(0, item.size) for item in known.items]
    return [_make(zeros, known.length)]


def _get(call: ListCall, memory: ListMemory) -> list[Buffer | None]:
    known = call.inputs.get(0)
    if not isinstance(known, ListBuffer) or not known.items:
        return [memory.allocate(0, call.outputs[0].size)]
    if not known.is_full:
        return [_use(known.items[-1])]
    known.reads += 1
    return [_use(known.items[(known.reads - 1) % len(known.items)])]


def _put(known: ListBuffer, item: Buffer | None, memory: ListMemory) -> None:
    if not known.is_full:
        known.items.append(item)
        return
    place = known.writes % len(known.items)
    known.writes += 1
    memory.release(known.items[place])
    known.items[place] = item


def _split(given: Tensor, memory: ListMemory) -> ListBuffer:
    """Return the list of the rows of a tensor."""
    length = given.shape[0] if given.shape else 0
    return _make([memory.allocate(0, given.size // length) for _ in range(length)], length or None)


def _add(lists: Sequence[ListBuffer], memory: ListMemory) -> ListBuffer:
    """Return the sum of lists, one after the other; where only one of two has an element, it is that of the sum.

    They are taken to have as few in common as their length allows: those of a loop's rounds have others each.
    """
    made = _make([], None)
    for other in lists:
        length = made.length if made.length is not None else other.length
        common = 0 if length is None else max(0, len(made.items) + len(other.items) - length)
        sums = [None if item is None else memory.allocate(0, item.size) for item in other.items[:common]]
        left = [*made.items[common:], *(_use(item) for item in other.items[common:])]
        for item in made.items[:common]:
            memory.release(item)
        made = _make([*left, *sums], length)
    return made


def _make(items: list[Buffer | None], length: int | None) -> ListBuffer:
    return ListBuffer("", 0, -1, 0, items=items, length=length)


def _use(item: Buffer | None) -> Buffer | None:
    """Return an item with one more use."""
    if item is not None:
        item.uses += 1
    return item


def _use_input(call: ListCall, number: int) -> Buffer | None:
    given = call.inputs.get(number)
    return _use(given if isinstance(given, Buffer) else None)


def _take_over(given: object) -> ListBuffer:
    """Return a list with the items of another, which loses them where nobody else needs it."""
    if not isinstance(given, ListBuffer):
        return _make([], None)
    made = ListBuffer("", 0, -1, 0, length=given.length, reads=given.reads, writes=given.writes)
    if given.uses == 1:
        made.items, given.items = given.items, made.items
    else:
        made.items = [_use(item) for item in given.items]
    return made


_Rule = Callable[[ListCall, ListMemory], list[Buffer | None]]
_RULES: Mapping[str, _Rule] = {
    "EmptyTensorList": _begin,
    RESERVE: _begin,
    "TensorListResize": _begin,
    "TensorListPushBack": _push,
    "TensorListSetItem": _set,
    "TensorListPopBack": _pop,
    "TensorListGetItem": _get,
    "TensorListFromTensor": _make_of_rows,
    "TensorListScatter": _make_of_rows,
    "TensorListScatterV2": _make_of_rows,
    "TensorListScatterIntoExistingList": _put_rows,
    "TensorListSplit": _make_of_parts,
    "OptionalFromValue": _wrap,
    "OptionalGetValue": _unwrap,
    "AddN": _sum,
    "ZerosLike": _make_zeros,
}
_OF_NUMBERS_TOO = frozenset({"AddN", "ZerosLike"})
