"""Build a graph from a list of nodes, in the order in which TensorFlow does.

Mirrors tensorflow/core/common_runtime/graph_constructor.cc (`InitFromEdges`, `Convert`, `AddBackEdges`) and
`FixupSourceAndSinkEdges` of tensorflow/core/graph/algorithm.cc.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simplace.errors import TargetError
from simplace.graph.algorithm import order_by_inputs
from simplace.graph.builder import CONTROL, SINK, SOURCE, GraphBuilder, Origin
from simplace.graph.dtypes import DataType, base_type, is_ref
from simplace.graph.graph import Graph, OwnOrigins
from simplace.graph.node_def import NodeDef
from simplace.graph.op_kinds import is_merge, is_next_iteration
from simplace.lowering.op_signatures import Signatures, Types
from simplace.program.status import invalid_argument

_SOURCE_ID, _SINK_ID = 0, 1


@dataclass(slots=True)
class NodeDraft:
    """Record of a node of a list with its attributes complete and its inputs found.

    `data` is (position in the list, slot) of each data input, `control` the position of each control input.
    """

    name: str
    op: str
    device: str
    attrs: Mapping[str, Any]
    types: Types
    data: Sequence[tuple[int, int]] = ()
    control: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Wiring:
    """Record of the nodes of a new graph in their order, without source and sink, and its edges as columns by edge id.

    The ends of an edge are node ids, so `drafts[i]` is node `i + 2`.
    """

    drafts: Sequence[NodeDraft]
    edge_src: list[int]
    edge_src_slot: list[int]
    edge_dst: list[int]
    edge_dst_slot: list[int]


def construct_graph(nodes: Sequence[NodeDef], signatures: Signatures) -> GraphBuilder:
    """Build the graph of a node list whose inputs are written as in a GraphDef.

    Raises `TargetError` for two nodes of one name, an input that is not there, a cycle; `UnknownOpError` for an op
    of which neither the kernel table nor the library knows.
    """
    return assemble_graph(drafts_of(nodes, signatures), signatures, "")


def construct_finished(nodes: Sequence[NodeDef], signatures: Signatures) -> Graph:
    """Do the same for a graph that nothing will be done to: what `freeze` would make of it, without the builder."""
    wiring = connect_drafts(drafts_of(nodes, signatures))
    drafts = wiring.drafts
    names = [SOURCE, SINK, *[draft.name for draft in drafts]]
    return Graph(
        names,
        ["NoOp", "NoOp", *[draft.op for draft in drafts]],
        ["", "", *[draft.device for draft in drafts]],
        [""] * (len(drafts) + 2),
        [{}, {}, *[draft.attrs for draft in drafts]],
        [(), (), *[draft.types[0] for draft in drafts]],
        [(), (), *[draft.types[1] for draft in drafts]],
        OwnOrigins(names),
        wiring.edge_src,
        wiring.edge_src_slot,
        wiring.edge_dst,
        wiring.edge_dst_slot,
    )


def drafts_of(nodes: Sequence[NodeDef], signatures: Signatures) -> list[NodeDraft]:
    """Complete the attributes of nodes and find their inputs; raise as `construct_graph` does."""
    first_outputs = {node.name: (i, 0) for i, node in enumerate(nodes)}
    if len(first_outputs) < len(nodes):
        twice = next(node.name for i, node in enumerate(nodes) if first_outputs[node.name][0] != i)
        raise TargetError(f"two nodes are called {twice!r}; names must be unique in a graph")
    first_output = first_outputs.__getitem__
    drafts = []
    control: tuple[int, ...]
    for name, op, device, inputs, attrs in nodes:
        complete, types = signatures.complete(op, attrs, name)
        try:
            data, control = tuple(map(first_output, inputs)), ()
        except KeyError:  # a control input, or an output that is not the first: no name has a caret or a colon in it
            data, control = _find_inputs(inputs, name, first_outputs)
        if len(data) != len(types[0]):
            raise wrong_input_count(name, op, len(data), len(types[0]))
        drafts.append(NodeDraft(name, op, device, complete, types, data, control))
    return drafts


def assemble_graph(drafts: Sequence[NodeDraft], signatures: Signatures, function: str) -> GraphBuilder:
    """Add drafts to a new graph, ordered and connected as `connect_drafts` says."""
    wiring = connect_drafts(drafts)
    builder = GraphBuilder(signatures)
    nodes = [builder.source, builder.sink]
    for draft in wiring.drafts:
        origin = Origin(function, draft.name)
        nodes.append(
            builder.add_node(
                draft.name, draft.op, device=draft.device, attrs=draft.attrs, types=draft.types, origin=origin
            )
        )
    rows = zip(wiring.edge_src, wiring.edge_src_slot, wiring.edge_dst, wiring.edge_dst_slot, strict=True)
    for src, src_slot, dst, dst_slot in rows:
        builder.add_edge(nodes[src], src_slot, nodes[dst], dst_slot)
    return builder


def connect_drafts(drafts: Sequence[NodeDraft]) -> Wiring:
    """Order drafts and their edges; the first in the list whose inputs are all there comes first (Kahn's algorithm).

    Edges into a node: data by slot, then control by source name without duplicates. Edges that close a loop come
    after all nodes, those of source and sink last. Raise `Refused` for a loop that changes a type.
    """
    order = range(len(drafts)) if _comes_in_order(drafts) else _order_drafts(drafts)
    number = [0] * len(drafts)
    edges: tuple[list[int], list[int], list[int], list[int]] = ([], [], [], [])
    add_src, add_src_slot, add_dst, add_dst_slot = [column.append for column in edges]
    back_edges: list[tuple[int, int, int, int]] = []
    for node, i in enumerate(order, 2):
        draft = drafts[i]
        number[i] = node
        for slot, (src, src_slot) in enumerate(draft.data):
            if not number[src]:
                back_edges.append((src, src_slot, node, slot))
                continue
            add_src(number[src])
            add_src_slot(src_slot)
            add_dst(node)
            add_dst_slot(slot)
        for src in _in_name_order(draft.control, drafts) if draft.control else ():
            assert number[src], "only the data inputs of a Merge may come later than itself"
            add_src(number[src])
            add_src_slot(CONTROL)
            add_dst(node)
            add_dst_slot(CONTROL)
    for src, src_slot, node, slot in back_edges:
        _refuse_other_type(drafts[src], src_slot, drafts[order[node - 2]], slot)
        _append_edge(edges, number[src], src_slot, node, slot)
    _connect_ends(edges, len(drafts) + 2)
    return Wiring(drafts if isinstance(order, range) else [drafts[i] for i in order], *edges)


def _refuse_other_type(source: NodeDraft, source_slot: int, node: NodeDraft, slot: int) -> None:
    """Raise `Refused` where a loop hands a Merge another type than it began with (`GraphConstructor::MakeEdge`).

    TensorFlow's Python has checked the types of all other edges: it adds these past that check.
    """
    found, wanted = source.types[1][source_slot], node.types[0][slot]
    if wanted not in (found, base_type(found)):
        raise invalid_argument(
            f"Input {slot} of node {node.name} was passed {_type_name(found)} from {source.name}:{source_slot} "
            f"incompatible with expected {_type_name(wanted)}."
        )


def _type_name(dtype: int) -> str:
    """Name a type as TensorFlow's C++ does (`DataTypeString`)."""
    return DataType(base_type(dtype)).name.removeprefix("DT_").lower() + ("_ref" if is_ref(dtype) else "")


def _append_edge(edges: tuple[list[int], ...], src: int, src_slot: int, dst: int, dst_slot: int) -> None:
    for column, value in zip(edges, (src, src_slot, dst, dst_slot), strict=True):
        column.append(value)


def _connect_ends(edges: tuple[list[int], ...], count: int) -> None:
    """Connect, by id, each node without in-edges to the source and each without out-edges to the sink."""
    feeds, fed = bytearray(count), bytearray(count)
    for src in edges[0]:
        feeds[src] = 1
    for dst in edges[2]:
        fed[dst] = 1
    added = [(_SOURCE_ID, _SINK_ID)]
    for node in range(2, count):
        if not fed[node]:
            added.append((_SOURCE_ID, node))
        if not feeds[node]:
            added.append((node, _SINK_ID))
    for column, values in zip(
        edges, zip(*((src, CONTROL, dst, CONTROL) for src, dst in added), strict=True), strict=True
    ):
        column.extend(values)


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


def _find_inputs(
    inputs: Sequence[str], node: str, first_outputs: Mapping[str, tuple[int, int]]
) -> tuple[tuple[tuple[int, int], ...], tuple[int, ...]]:
    data: list[tuple[int, int]] = []
    control: list[int] = []
    for text in inputs:
        name, slot = (text, 0) if text in first_outputs else split_input(text)
        first = first_outputs.get(name)
        if first is None:
            raise TargetError(f"node {node!r} has the input {text!r}, but no node is called {name!r}")
        if slot == CONTROL:
            control.append(first[0])
        elif control:
            raise TargetError(f"node {node!r} has the data input {text!r} after a control input")
        else:
            data.append((first[0], slot))
    return tuple(data), tuple(control)


def wrong_input_count(node: str, op: str, found: int, wanted: int, function: str = "") -> TargetError:
    """Return the refusal of a node that has another number of data inputs than its op takes."""
    where = f" of function {function!r}" if function else ""
    return TargetError(f"node {node!r}{where} has {found} inputs, but its op {op} takes {wanted}")


def _comes_in_order(drafts: Sequence[NodeDraft]) -> bool:
    """Return whether every input but those that close a loop comes before its node, which leaves nothing to order.

    Raise `TargetError` for an input from an output that a node does not have.
    """
    outputs = [len(draft.types[1]) for draft in drafts]
    in_order = True
    for i, draft in enumerate(drafts):
        merges = is_merge(draft.op)
        is_reached = not merges
        for src, slot in draft.data:
            if slot >= outputs[src]:
                has = "1 output" if outputs[src] == 1 else f"{outputs[src] or 'no'} outputs"
                raise TargetError(f"node {draft.name!r} reads output {slot} of {drafts[src].name!r}, which has {has}")
            if merges and is_next_iteration(drafts[src].op):
                continue
            is_reached = True
            if src >= i:
                in_order = False
        if not is_reached or (draft.control and max(draft.control) >= i):
            in_order = False
    return in_order


def _order_drafts(drafts: Sequence[NodeDraft]) -> list[int]:
    pending, outputs = _count_dependencies(drafts)
    order = order_by_inputs(pending, outputs.__getitem__)
    if len(order) < len(drafts):
        stuck = next(i for i, count in enumerate(pending) if count > 0)
        raise TargetError(f"{len(drafts) - len(order)} nodes are in a cycle, among them {drafts[stuck].name!r}")
    return order


def _count_dependencies(drafts: Sequence[NodeDraft]) -> tuple[list[int], list[list[int]]]:
    """Count what each node waits for and list who waits for it; inputs that repeat count each time.

    No node waits for an edge that closes a loop, and the Merge there waits for one data input and its control inputs.
    """
    pending = []
    outputs: list[list[int]] = [[] for _ in drafts]
    for i, draft in enumerate(drafts):
        count = len(draft.data) + len(draft.control)
        merges = is_merge(draft.op)
        if merges and any(is_next_iteration(drafts[src].op) for src, _ in draft.data):
            count = len(draft.control) + 1
        pending.append(count)
        for src, _ in draft.data:
            if not (merges and is_next_iteration(drafts[src].op)):
                outputs[src].append(i)
        for src in draft.control:
            outputs[src].append(i)
    return pending, outputs


def _in_name_order(control: Sequence[int], drafts: Sequence[NodeDraft]) -> Sequence[int]:
    if len(control) < 2:
        return control
    return sorted(set(control), key=lambda src: drafts[src].name)
