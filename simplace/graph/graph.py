"""The graph that a placer sees: flat arrays in TensorFlow's order, frozen.

Node ids are dense and node 0 is the source, node 1 the sink. Edges are in the order of their creation, so the first
in-edge of a node is its oldest (compiler/jit/encapsulate_subgraphs_pass.cc rebuilds every graph like this just
before the placer).
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, compress, count, islice
from operator import le, not_
from typing import Any, overload

from simplace.graph.builder import CONTROL, GraphBuilder, Origin


class OwnOrigins(Sequence[Origin]):
    """List the origins of nodes that the graph itself holds under these names; each is made when it is needed."""

    def __init__(self, names: list[str]) -> None:
        self._names = names

    def __len__(self) -> int:
        return len(self._names)

    @overload
    def __getitem__(self, index: int) -> Origin: ...

    @overload
    def __getitem__(self, index: slice) -> list[Origin]: ...

    def __getitem__(self, index: int | slice) -> Origin | list[Origin]:
        if isinstance(index, slice):
            return [Origin("", name) for name in self._names[index]]
        return Origin("", self._names[index])


class EdgesOfNodes(Sequence[list[int]]):
    """List the edges at each node by number, in two flat arrays: a list for each node takes four times the memory.

    >>> list(EdgesOfNodes([1, 0, 1], 3))
    [[1], [0, 2], []]
    """

    def __init__(self, ends: Sequence[int], nodes: int) -> None:
        self._starts = array("l", accumulate(map(Counter(ends).__getitem__, range(nodes)), initial=0))
        if all(map(le, ends, islice(ends, 1, None))):  # most graphs list the edges into their nodes in order
            self._edges = array("l", range(len(ends)))
            return
        self._edges = array("l", bytes(len(ends) * self._starts.itemsize))
        free = self._starts.tolist()  # a sort by counting, which keeps the oldest first
        for edge, end in enumerate(ends):
            self._edges[free[end]] = edge
            free[end] += 1

    def __len__(self) -> int:
        return len(self._starts) - 1

    @overload
    def __getitem__(self, index: int) -> list[int]: ...

    @overload
    def __getitem__(self, index: slice) -> list[list[int]]: ...

    def __getitem__(self, index: int | slice) -> list[int] | list[list[int]]:
        if isinstance(index, slice):
            return [self[node] for node in range(len(self))[index]]
        node = index if index >= 0 else index + len(self)
        return self._edges[self._starts[node] : self._starts[node + 1]].tolist()


@dataclass(frozen=True)
class Graph:
    """Record of nodes as columns by id and edges as columns by edge number.

    `requested` and `assigned` are device strings, "" for none; `assigned` is what was fixed before the placer ran
    (arguments, results, stateful nodes of an earlier run). Types are numbers, reference types plus 100.
    """

    names: list[str]
    ops: list[str]
    requested: list[str]
    assigned: list[str]
    attrs: list[Mapping[str, Any]]
    in_types: list[tuple[int, ...]]
    out_types: list[tuple[int, ...]]
    origins: Sequence[Origin]
    edge_src: list[int]
    edge_src_slot: list[int]
    edge_dst: list[int]
    edge_dst_slot: list[int]

    def __len__(self) -> int:
        return len(self.names)

    def __str__(self) -> str:
        return "\n".join(
            f"{self.names[i]} = {self.ops[i]}({', '.join(self.input_names(i))})"
            + (f" @{self.requested[i]}" if self.requested[i] else "")
            + (f" !{self.assigned[i]}" if self.assigned[i] else "")
            for i in self.op_ids
        )

    @property
    def op_ids(self) -> range:
        """Return the ids of all nodes but the source and the sink (Graph::op_nodes)."""
        return range(2, len(self.names))

    @cached_property
    def in_edges(self) -> Sequence[list[int]]:
        """List the edge numbers into each node, oldest first."""
        return EdgesOfNodes(self.edge_dst, len(self))

    @cached_property
    def out_edges(self) -> Sequence[list[int]]:
        """List the edge numbers out of each node, oldest first."""
        return EdgesOfNodes(self.edge_src, len(self))

    @cached_property
    def first_inputs(self) -> dict[int, int]:
        """Map nodes with data inputs to the number of the edge into the first of them."""
        return dict(compress(zip(self.edge_dst, count(), strict=False), map(not_, self.edge_dst_slot)))

    @cached_property
    def ids(self) -> dict[str, int]:
        """Map names to node ids."""
        return {name: i for i, name in enumerate(self.names)}

    def data_in_edges(self, node: int) -> list[int]:
        """List the data edges into `node`, by input slot."""
        edges = [edge for edge in self.in_edges[node] if self.edge_dst_slot[edge] != CONTROL]
        return sorted(edges, key=self.edge_dst_slot.__getitem__)

    def list_sources(self, node: int) -> list[tuple[int, int]]:
        """List the outputs that `node` takes, each as a node and a slot, by input slot."""
        return [(self.edge_src[edge], self.edge_src_slot[edge]) for edge in self.data_in_edges(node)]

    def walk_first_inputs(self, node: int) -> Iterator[int]:
        """Yield where the first input of a node comes from, then where that one's does ...; in a loop, each once."""
        seen = {node}
        while (edge := self.first_inputs.get(node)) is not None:
            node = self.edge_src[edge]
            if node in seen:
                return
            seen.add(node)
            yield node

    def is_control(self, edge: int) -> bool:
        """Return whether an edge only orders its ends."""
        return self.edge_src_slot[edge] == CONTROL

    def input_names(self, node: int) -> list[str]:
        """Return the inputs of a node as a NodeDef does: data by slot, then "^control"; source edges left out."""
        data = [
            self.names[self.edge_src[e]] + (f":{self.edge_src_slot[e]}" if self.edge_src_slot[e] else "")
            for e in self.data_in_edges(node)
        ]
        control = [
            "^" + self.names[self.edge_src[e]]
            for e in self.in_edges[node]
            if self.is_control(e) and self.edge_src[e] != 0
        ]
        return data + control


def freeze_graph(builder: GraphBuilder) -> Graph:
    """Copy a finished builder: nodes by id, edges by edge id, duplicate edges dropped."""
    live = [node for node in builder.nodes if node is not None]
    number = [0] * len(builder.nodes)
    for i, node in enumerate(live):
        number[node.id] = i
    edges = dict.fromkeys(
        (number[edge.src.id], edge.src_slot, number[edge.dst.id], edge.dst_slot)
        for edge in builder.edges
        if edge is not None
    )
    return Graph(
        [node.name for node in live],
        [node.op for node in live],
        [node.device for node in live],
        [node.assigned for node in live],
        [node.attrs for node in live],
        [node.in_types for node in live],
        [node.out_types for node in live],
        [node.origin for node in live],
        [src for src, _, _, _ in edges],
        [src_slot for _, src_slot, _, _ in edges],
        [dst for _, _, dst, _ in edges],
        [dst_slot for _, _, _, dst_slot in edges],
    )
