"""Build a graph from a list of nodes, in the order in which TensorFlow does.

Mirrors tensorflow/core/common_runtime/graph_constructor.cc (`InitFromEdges`, `Convert`, `AddBackEdges`) and
`FixupSourceAndSinkEdges` of tensorflow/core/graph/algorithm.cc.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from simplace.errors import TargetError
from simplace.graph.build import CONTROL, GraphBuilder, Node, Origin
from simplace.graph.node_def import NodeDef
from simplace.lowering.signatures import Signatures, Types

MERGES = frozenset({"Merge", "RefMerge", "_XlaMerge"})
NEXT_ITERATIONS = frozenset({"NextIteration", "RefNextIteration"})


@dataclass(slots=True)
class Draft:
    """Hold a node of a list with its attributes complete and its inputs found: `data` is (position, slot) each."""

    name: str
    op: str
    device: str
    attrs: Mapping[str, Any]
    types: Types
    data: list[tuple[int, int]] = field(default_factory=list)
    control: list[int] = field(default_factory=list)


def construct(nodes: Sequence[NodeDef], signatures: Signatures) -> GraphBuilder:
    """Build the graph of a node list whose inputs are written as in a GraphDef.

    Raises `TargetError` for two nodes of one name, an input that is not there, a cycle; `UnknownOpError` for an op
    of which neither the kernel table nor the library knows.
    """
    positions: dict[str, int] = {}
    drafts = []
    for i, node in enumerate(nodes):
        if positions.setdefault(node.name, i) != i:
            raise TargetError(f"two nodes are called {node.name!r}; names must be unique in a graph")
        attrs = signatures.with_defaults(node.op, node.attrs, node.name)
        drafts.append(Draft(node.name, node.op, node.device, attrs, signatures.types_of(node.op, attrs, node.name)))
    for node, draft in zip(nodes, drafts, strict=True):
        _find_inputs(node, draft, positions)
    return assemble(drafts, signatures, "")


def assemble(drafts: Sequence[Draft], signatures: Signatures, function: str) -> GraphBuilder:
    """Add drafts to a new graph, the first in the list whose inputs are all there first (Kahn's algorithm).

    Edges into a node: data by slot, then control by source name without duplicates. Edges that close a loop come
    after all nodes, those of source and sink last.
    """
    builder = GraphBuilder(signatures)
    made: list[Node | None] = [None] * len(drafts)
    back_edges: list[tuple[int, int, Node, int]] = []
    for i in _order(drafts):
        draft = drafts[i]
        node = builder.add_node(
            draft.name, draft.op, device=draft.device, attrs=draft.attrs, types=draft.types,
            origin=Origin(function, draft.name),
        )  # fmt: skip
        made[i] = node
        for slot, (src, src_slot) in enumerate(draft.data):
            source = made[src]
            if source is None:
                back_edges.append((src, src_slot, node, slot))
            else:
                builder.add_edge(source, src_slot, node, slot)
        for src in _in_name_order(draft.control, drafts):
            source = made[src]
            assert source is not None, "only the data inputs of a Merge may come later than itself"
            builder.add_edge(source, CONTROL, node, CONTROL)
    for src, src_slot, node, slot in back_edges:
        source = made[src]
        assert source is not None, "all nodes have been made"
        builder.add_edge(source, src_slot, node, slot)
    fix_source_and_sink(builder)
    return builder


def fix_source_and_sink(builder: GraphBuilder) -> None:
    """Tie, by id, each node without in-edges to the source and each without out-edges to the sink."""
    for node in builder.nodes:
        if node is None:
            continue
        if not node.in_edges and node is not builder.source:
            builder.add_edge(builder.source, CONTROL, node, CONTROL)
        if not node.out_edges and node is not builder.sink:
            builder.add_edge(node, CONTROL, builder.sink, CONTROL)


def split_input(text: str) -> tuple[str, int]:
    """Split a GraphDef's input into the node's name and the output slot.

    >>> split_input("a"), split_input("a:1"), split_input("^a")
    (('a', 0), ('a', 1), ('a', -1))
    """
    if text.startswith("^"):
        return text[1:], CONTROL
    name, colon, slot = text.rpartition(":")
    if colon and slot.isdigit():
        return name, int(slot)
    return text, 0


def _find_inputs(node: NodeDef, draft: Draft, positions: Mapping[str, int]) -> None:
    for text in node.inputs:
        name, slot = split_input(text)
        position = positions.get(name)
        if position is None:
            raise TargetError(f"node {node.name!r} has the input {text!r}, but no node is called {name!r}")
        if slot == CONTROL:
            draft.control.append(position)
        elif draft.control:
            raise TargetError(f"node {node.name!r} has the data input {text!r} after a control input")
        else:
            draft.data.append((position, slot))
    check_input_count(draft, "")


def check_input_count(draft: Draft, function: str) -> None:
    """Raise `TargetError` unless a node has as many data inputs as its op takes."""
    if len(draft.data) != len(draft.types[0]):
        where = f" of function {function!r}" if function else ""
        raise TargetError(
            f"node {draft.name!r}{where} has {len(draft.data)} inputs, but its op {draft.op} takes "
            f"{len(draft.types[0])}"
        )


def _order(drafts: Sequence[Draft]) -> list[int]:
    pending, outputs = _dependencies(drafts)
    ready = [i for i, count in enumerate(pending) if count == 0]
    order = []
    while ready:
        i = heapq.heappop(ready)
        order.append(i)
        closes_loops = drafts[i].op in NEXT_ITERATIONS
        for output in outputs[i]:
            if closes_loops and drafts[output].op in MERGES:
                continue
            pending[output] -= 1
            if pending[output] == 0:
                heapq.heappush(ready, output)
    if len(order) < len(drafts):
        stuck = next(i for i, count in enumerate(pending) if count > 0)
        raise TargetError(f"{len(drafts) - len(order)} nodes are in a cycle, among them {drafts[stuck].name!r}")
    return order


def _dependencies(drafts: Sequence[Draft]) -> tuple[list[int], list[list[int]]]:
    """Count what each node waits for and list who waits for it; inputs that repeat count each time."""
    pending = []
    outputs: list[list[int]] = [[] for _ in drafts]
    for i, draft in enumerate(drafts):
        count = len(draft.data) + len(draft.control)
        if draft.op in MERGES and any(drafts[src].op in NEXT_ITERATIONS for src, _ in draft.data):
            count = len(draft.control) + 1
        pending.append(count)
        for src, slot in draft.data:
            if slot >= len(drafts[src].types[1]):
                raise TargetError(
                    f"node {draft.name!r} reads output {slot} of {drafts[src].name!r}, "
                    f"which has {len(drafts[src].types[1])} outputs"
                )
            outputs[src].append(i)
        for src in draft.control:
            outputs[src].append(i)
    return pending, outputs


def _in_name_order(control: list[int], drafts: Sequence[Draft]) -> list[int]:
    if len(control) < 2:
        return control
    return sorted(set(control), key=lambda src: drafts[src].name)
