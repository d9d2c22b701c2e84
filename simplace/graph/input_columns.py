"""What the inputs of a list of nodes name, in flat columns: most large graphs have several inputs a node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, compress, repeat
from operator import eq, itemgetter, lt

from simplace.graph.builder import CONTROL
from simplace.graph.node_def import NodeDef
from simplace.graph.tensor_id import Slot, TensorSlots


class UnknownInputError(Exception):
    """Report that node `node` of a list has an input, `text`, which names no node of it."""

    def __init__(self, node: int, text: str) -> None:
        super().__init__(node, text)
        self.node = node
        self.text = text


@dataclass(frozen=True, slots=True)
class InputColumns:
    """Record of the inputs of all nodes of a list, node by node as they are written; places are those in the list.

    `starts` has for each node the number of its first input, and one more at the end. Input k is an input of node
    `dst[k]` and names output `slot[k]` of node `src[k]`, or that node alone with the slot `CONTROL`. `data_counts` has
    the number of data inputs of each node, `waiting` lists the nodes with a control input. Where a list `is_forward`,
    each node comes after those that its inputs name.
    """

    starts: Sequence[int]
    src: Sequence[int]
    slot: Sequence[int]
    dst: Sequence[int]
    data_counts: Sequence[int]
    waiting: Sequence[int]
    is_forward: bool

    def of(self, node: int) -> list[Slot]:
        """List the inputs of a node."""
        start, stop = self.starts[node], self.starts[node + 1]
        return list(zip(self.src[start:stop], self.slot[start:stop], strict=True))

    def data_edges(self) -> tuple[Sequence[int], Sequence[int], Sequence[int]]:
        """Return (src, slot, dst) without control inputs."""
        if not self.waiting:
            return self.src, self.slot, self.dst
        is_data = [slot != CONTROL for slot in self.slot]
        src, slot, dst = (list(compress(column, is_data)) for column in (self.src, self.slot, self.dst))
        return src, slot, dst

    @property
    def is_mixed(self) -> bool:
        """Return whether a data input comes after a control input anywhere."""
        counts, starts, slot = self.data_counts, self.starts, self.slot
        return any(CONTROL in slot[starts[node] : starts[node] + counts[node]] for node in self.waiting)


def has_mixed_inputs(inputs: Sequence[str]) -> bool:
    """Return whether a data input comes after a control input, as they are written.

    >>> has_mixed_inputs(("a", "^b")), has_mixed_inputs(("^b", "a"))
    (False, True)
    """
    is_control = [text.startswith("^") for text in inputs]
    return is_control != sorted(is_control)


def number_nodes(nodes: Sequence[NodeDef]) -> dict[str, Slot]:
    """Map the name of each node, the last one of that name, to its place and its first output."""
    return {node.name: (i, 0) for i, node in enumerate(nodes)}


def resolve_inputs(nodes: Sequence[NodeDef], places: Mapping[str, Slot]) -> InputColumns:
    """Look up the inputs of nodes, whose names have `places`; raise `UnknownInputError` for the first that is unknown.

    >>> columns = resolve_inputs(nodes := [NodeDef("a", "A", "", (), {}), NodeDef("b", "B", "", ("a:1", "^a"), {})],
    ...                          number_nodes(nodes))
    >>> columns.src, columns.slot, columns.dst, columns.data_counts, columns.waiting
    ([0, 0], [1, -1], [1, 1], [0, 1], [1])
    """
    inputs = [node.inputs for node in nodes]
    try:
        found = list(map(TensorSlots(places).__getitem__, chain.from_iterable(inputs)))
    except KeyError as missing:
        text = missing.args[0]
        raise UnknownInputError(next(i for i, own in enumerate(inputs) if text in own), text) from None
    counts = list(map(len, inputs))
    src, slot = list(map(itemgetter(0), found)), list(map(itemgetter(1), found))
    dst = list(chain.from_iterable(map(repeat, range(len(nodes)), counts)))
    starts = list(accumulate(counts, initial=0))
    waiting = list(dict.fromkeys(compress(dst, map(eq, slot, repeat(CONTROL))))) if CONTROL in slot else []
    for node in waiting:
        counts[node] -= slot[starts[node] : starts[node + 1]].count(CONTROL)
    return InputColumns(starts, src, slot, dst, counts, waiting, all(map(lt, src, dst)))
