"""A graph under construction: nodes and edges that can be added, moved and removed.

It keeps the orders that TensorFlow's rules can see (tensorflow/core/graph/graph.cc): node ids and edge ids only
grow, an erased edge is replaced in its node's list by the last one (edgeset.cc), node 0 is the source and node 1
the sink. Beyond eight edges TensorFlow's own order depends on addresses; here it stays the order of insertion.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

from simplace.graph.node_def import NodeDef

CONTROL = -1
SOURCE = "_SOURCE"
SINK = "_SINK"


class Origin(NamedTuple):
    """Record of where a node was written: in which library function ("" for the graph itself), under which name.

    `via` is the call, If, Case or While that brought it into the graph, "" for a node that was there from the start.
    `made_by` names the rewrite that invented the node ("inline", "lower If", ...), "" for a node somebody wrote.
    """

    function: str
    name: str
    via: str = ""
    made_by: str = ""


class OpTypes(Protocol):
    """Return the input and output types of a node from its op and attributes, library functions included."""

    def __call__(self, op: str, attrs: Mapping[str, Any]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return (input types, output types), reference types plus 100."""
        ...


class Edge:
    """Record of an edge from an output of `src` to an input of `dst`; both slots are `CONTROL` for a control edge."""

    __slots__ = ("_in_place", "_out_place", "dst", "dst_slot", "id", "src", "src_slot")

    def __init__(self, id: int, src: Node, src_slot: int, dst: Node, dst_slot: int) -> None:
        self.id = id
        self.src = src
        self.src_slot = src_slot
        self.dst = dst
        self.dst_slot = dst_slot
        self._out_place = len(src.out_edges)  # where it is in the lists of its ends, so that erasing takes no search
        self._in_place = len(dst.in_edges)

    @property
    def is_control(self) -> bool:
        """Return whether the edge only orders its ends."""
        return self.src_slot == CONTROL

    def __repr__(self) -> str:
        return f"Edge({self.id}: {self.src.name}:{self.src_slot} -> {self.dst.name}:{self.dst_slot})"


class Node:
    """Record of one node: `device` is the requested device, `assigned` the assigned one ("" for none)."""

    __slots__ = (
        "assigned", "attrs", "device", "id", "in_edges", "in_types", "name", "op", "origin", "out_edges", "out_types",
    )  # fmt: skip

    def __init__(
        self,
        id: int,
        name: str,
        op: str,
        device: str,
        attrs: Mapping[str, Any],
        types: tuple[tuple[int, ...], tuple[int, ...]],
        origin: Origin,
    ) -> None:
        self.id = id
        self.name = name
        self.op = op
        self.device = device
        self.assigned = ""
        self.attrs = attrs
        self.in_types, self.out_types = types
        self.in_edges: list[Edge] = []
        self.out_edges: list[Edge] = []
        self.origin = origin

    @property
    def is_source_or_sink(self) -> bool:
        """Return whether this is one of the two nodes that every graph has."""
        return self.id < 2

    def data_input(self, slot: int) -> Edge:
        """Return the edge into data input `slot`."""
        return next(edge for edge in self.in_edges if edge.dst_slot == slot)

    def data_inputs(self) -> list[Edge]:
        """Return the data edges into this node, by slot."""
        return sorted((edge for edge in self.in_edges if edge.dst_slot != CONTROL), key=lambda edge: edge.dst_slot)

    def control_inputs(self) -> list[Edge]:
        """Return the control edges into this node, in their present order."""
        return [edge for edge in self.in_edges if edge.dst_slot == CONTROL]

    def __repr__(self) -> str:
        return f"Node({self.id}: {self.name} = {self.op})"


def control_inputs(nodes: Iterable[Node]) -> list[tuple[Node, int]]:
    """Return the inputs of a node that waits for others and takes nothing of them."""
    return [(node, CONTROL) for node in nodes]


class GraphBuilder:
    """Build a graph the way TensorFlow's `Graph` class does."""

    def __init__(self, types: OpTypes) -> None:
        self.types = types
        self.nodes: list[Node | None] = []
        self.edges: list[Edge | None] = []
        self._names_made = 0
        for name in (SOURCE, SINK):
            self._append(name, "NoOp", "", {}, ((), ()), Origin("", name))

    @property
    def source(self) -> Node:
        """Return node 0."""
        node = self.nodes[0]
        assert node is not None, "the source is never removed"
        return node

    @property
    def sink(self) -> Node:
        """Return node 1."""
        node = self.nodes[1]
        assert node is not None, "the sink is never removed"
        return node

    def node(self, id: int) -> Node:
        """Return a live node by its id."""
        node = self.nodes[id]
        assert node is not None, f"node {id} is removed"
        return node

    def op_nodes(self) -> Iterator[Node]:
        """Walk the live nodes by id, without source and sink; nodes added meanwhile are visited too."""
        i = 2
        while i < len(self.nodes):
            node = self.nodes[i]
            if node is not None:
                yield node
            i += 1

    def new_name(self, prefix: str) -> str:
        """Return `prefix/_k`, with one counter per graph (Graph::NewName)."""
        name = f"{prefix}/_{self._names_made}"
        self._names_made += 1
        return name

    def add_node(
        self,
        name: str,
        op: str,
        *,
        device: str = "",
        attrs: Mapping[str, Any] | None = None,
        origin: Origin,
        inputs: Iterable[tuple[Node, int]] = (),
        types: tuple[tuple[int, ...], tuple[int, ...]] | None = None,
    ) -> Node:
        """Add a node, then its data edges by slot, then its control edges (NodeBuilder::Finalize).

        `inputs` are (node, output slot), those of `control_inputs` after the others. `types` are looked up from the op
        and its attributes where they are not given.
        """
        attrs = {} if attrs is None else attrs
        node = self._append(name, op, device, attrs, self.types(op, attrs) if types is None else types, origin)
        for slot, (src, src_slot) in enumerate(inputs):
            if src_slot == CONTROL:
                self.add_control_edge(src, node)
            else:
                self.add_edge(src, src_slot, node, slot)
        return node

    def add_node_def(self, node: NodeDef, origin: Origin) -> Node:
        """Add a node as written, without edges."""
        return self._append(node.name, node.op, node.device, node.attrs, self.types(node.op, node.attrs), origin)

    def add_edge(self, src: Node, src_slot: int, dst: Node, dst_slot: int) -> Edge:
        """Add an edge, duplicates included (Graph::AddEdge)."""
        edge = Edge(len(self.edges), src, src_slot, dst, dst_slot)
        self.edges.append(edge)
        src.out_edges.append(edge)
        dst.in_edges.append(edge)
        return edge

    def add_control_edge(self, src: Node, dst: Node) -> Edge | None:
        """Add a control edge unless there is one already; return None then (Graph::AddControlEdge)."""
        fewer = dst.in_edges if len(dst.in_edges) <= len(src.out_edges) else src.out_edges
        for edge in fewer:
            if edge.src_slot == CONTROL and edge.src is src and edge.dst is dst:
                return None
        return self.add_edge(src, CONTROL, dst, CONTROL)

    def remove_edge(self, edge: Edge) -> None:
        """Remove an edge; the last edge of each end's list takes its place."""
        _erase_out(edge)
        _erase_in(edge)
        self.edges[edge.id] = None

    def update_edge(self, src: Node, src_slot: int, dst: Node, dst_slot: int) -> None:
        """Replace the edge into an input by a new one from elsewhere (Graph::UpdateEdge)."""
        self.remove_edge(dst.data_input(dst_slot))
        self.add_edge(src, src_slot, dst, dst_slot)

    def remove_node(self, node: Node) -> None:
        """Remove a node with its edges; its id is never used again."""
        for edge in node.in_edges:
            _erase_out(edge)
            self.edges[edge.id] = None
        for edge in node.out_edges:
            _erase_in(edge)
            self.edges[edge.id] = None
        node.in_edges = []
        node.out_edges = []
        self.nodes[node.id] = None

    def _append(
        self,
        name: str,
        op: str,
        device: str,
        attrs: Mapping[str, Any],
        types: tuple[tuple[int, ...], tuple[int, ...]],
        origin: Origin,
    ) -> Node:
        node = Node(len(self.nodes), name, op, device, attrs, types, origin)
        self.nodes.append(node)
        return node


def _erase_out(edge: Edge) -> None:
    edges = edge.src.out_edges
    last = edges.pop()
    if last is not edge:
        edges[edge._out_place] = last
        last._out_place = edge._out_place


def _erase_in(edge: Edge) -> None:
    edges = edge.dst.in_edges
    last = edges.pop()
    if last is not edge:
        edges[edge._in_place] = last
        last._in_place = edge._in_place
