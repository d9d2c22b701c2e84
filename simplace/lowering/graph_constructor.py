"""Build a graph from a list of nodes, in the order in which TensorFlow does.

Mirrors tensorflow/core/common_runtime/graph_constructor.cc (`InitFromEdges`, `Convert`, `AddBackEdges`) and
`FixupSourceAndSinkEdges` of tensorflow/core/graph/algorithm.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from operator import lt, sub
from typing import Any

from simplace.errors import TargetError
from simplace.graph.algorithm import order_by_inputs
from simplace.graph.builder import CONTROL, SINK, SOURCE, GraphBuilder, Origin
from simplace.graph.dtypes import base_type, name_in_messages
from simplace.graph.graph import Graph, OwnOrigins
from simplace.graph.input_columns import InputColumns, UnknownInputError, number_nodes, resolve_inputs
from simplace.graph.node_def import NodeDef
from simplace.graph.op_kinds import MERGES, is_merge, is_next_iteration
from simplace.graph.tensor_id import TensorSlots, parse_tensor_name
from simplace.lowering.op_signatures import Signatures, Types
from simplace.program.status import invalid_argument

_SOURCE_ID, _SINK_ID, _FIRST_ID = 0, 1, 2

Inputs = tuple[Sequence[tuple[int, int]], Sequence[int]]  # as the fields of a `NodeDraft`
Edges = tuple[list[int], list[int], list[int], list[int]]  # source, its output slot, destination, its input slot


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


def construct_finished(nodes: Sequence[NodeDef], signatures: Signatures, inputs: InputColumns | None = None) -> Graph:
    """Do the same for a graph that nothing will be done to: what `freeze` would make of it, without the builder.

    `inputs` is what the inputs of these nodes name, where that has been looked up before.
    """
    if inputs is None:
        places = number_nodes(nodes)
        with suppress(UnknownInputError):
            inputs = resolve_inputs(nodes, places) if len(places) == len(nodes) else None
    if inputs is not None and inputs.is_mixed:
        inputs = None
    made = None if inputs is None or not inputs.is_forward else _construct_in_list_order(nodes, signatures, inputs)
    return _construct_by_drafts(drafts_of(nodes, signatures, inputs)) if made is None else made


def _construct_in_list_order(nodes: Sequence[NodeDef], signatures: Signatures, inputs: InputColumns) -> Graph | None:
    """Return the graph of nodes that come in TensorFlow's order without a loop, None where anything is otherwise."""
    ops = [node.op for node in nodes]
    if not MERGES.isdisjoint(ops):
        return None
    types, all_attrs = [], []
    for (name, op, _, _, attrs), count in zip(nodes, inputs.data_counts, strict=True):
        complete, own = signatures.complete(op, attrs, name)
        if len(own[0]) != count:
            return None
        types.append(own)
        all_attrs.append(complete)
    outputs = [len(outputs) for _, outputs in types]
    if not all(map(lt, inputs.slot, [outputs[node] for node in inputs.src])):
        return None
    names = [SOURCE, SINK, *[node.name for node in nodes]]
    devices = [node.device for node in nodes]
    return _make_graph(names, ops, devices, all_attrs, types, _connect_columns(inputs, names))


def _construct_by_drafts(listed: Sequence[NodeDraft]) -> Graph:
    wiring = connect_drafts(listed)
    drafts = wiring.drafts
    return _make_graph(
        [SOURCE, SINK, *[draft.name for draft in drafts]],
        [draft.op for draft in drafts],
        [draft.device for draft in drafts],
        [draft.attrs for draft in drafts],
        [draft.types for draft in drafts],
        (wiring.edge_src, wiring.edge_src_slot, wiring.edge_dst, wiring.edge_dst_slot),
    )


def _make_graph(
    names: list[str],
    ops: Sequence[str],
    devices: Sequence[str],
    attrs: Sequence[Mapping[str, Any]],
    types: Sequence[Types],
    edges: Edges,
) -> Graph:
    """Return the graph of columns without source and sink, but for the names, and of edges between node ids."""
    return Graph(
        names,
        ["NoOp", "NoOp", *ops],
        ["", "", *devices],
        [""] * len(names),
        [{}, {}, *attrs],
        [(), (), *[inputs for inputs, _ in types]],
        [(), (), *[outputs for _, outputs in types]],
        OwnOrigins(names),
        *edges,
    )


def drafts_of(nodes: Sequence[NodeDef], signatures: Signatures, inputs: InputColumns | None = None) -> list[NodeDraft]:
    """Complete the attributes of nodes and find their inputs; raise as `construct_graph` does.

    `inputs` is what the inputs name, where that has been looked up; without, a data input after a control input raises
    `Refused` (BuildNodeIndex).
    """
    inputs_of = _look_up_names(nodes) if inputs is None else _read_columns(inputs)
    drafts = []
    for i, (name, op, device, _, attrs) in enumerate(nodes):
        complete, types = signatures.complete(op, attrs, name)
        data, control = inputs_of(i)
        if len(data) != len(types[0]):
            raise wrong_input_count(name, op, len(data), len(types[0]))
        drafts.append(NodeDraft(name, op, device, complete, types, data, control))
    return drafts


def _look_up_names(nodes: Sequence[NodeDef]) -> Callable[[int], Inputs]:
    """Return what looks up the data and control inputs of a node by their names."""
    places = number_nodes(nodes)
    if len(places) < len(nodes):
        twice = next(node.name for i, node in enumerate(nodes) if places[node.name][0] != i)
        raise TargetError(f"two nodes are called {twice!r}; names must be unique in a graph")
    first_output, slots = places.__getitem__, TensorSlots(places)

    def inputs_of(i: int) -> Inputs:
        node = nodes[i]
        try:
            return tuple(map(first_output, node.inputs)), ()
        except KeyError:  # a control input, or an output that is not the first: no name has a caret or a colon in it
            return _find_inputs(node.inputs, node.name, slots)

    return inputs_of


def _read_columns(inputs: InputColumns) -> Callable[[int], Inputs]:
    """Return what reads the data and control inputs of a node from columns."""
    slots, src, starts = list(zip(inputs.src, inputs.slot, strict=True)), inputs.src, inputs.starts

    def inputs_of(i: int) -> Inputs:
        control = starts[i] + inputs.data_counts[i]
        return slots[starts[i] : control], src[control : starts[i + 1]]

    return inputs_of


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
    wiring = _connect_in_order(drafts, range(len(drafts)))
    if wiring is None:
        _refuse_missing_outputs(drafts)
        wiring = _connect_in_order(drafts, _order_drafts(drafts), is_ordered=True)
        assert wiring is not None, "what comes after its node in this order closes a loop"
    return wiring


def _connect_in_order(drafts: Sequence[NodeDraft], order: Sequence[int], *, is_ordered: bool = False) -> Wiring | None:
    """Connect drafts in an order, None if that is not the one in which TensorFlow takes them.

    What comes later than its node closes a loop: where the order is known to be TensorFlow's always, else where it goes
    from a NextIteration to a Merge.
    """
    outputs = [len(draft.types[1]) for draft in drafts]
    ids = [0] * len(drafts)
    edges: Edges = ([], [], [], [])
    add_src, add_src_slot, add_dst, add_dst_slot = [column.append for column in edges]
    back_edges: list[tuple[int, int, int, int]] = []
    for node, i in enumerate(order, _FIRST_ID):
        draft, is_loop = drafts[i], is_ordered
        if not is_ordered and is_merge(draft.op):
            closing = [is_next_iteration(drafts[src].op) for src, _ in draft.data]
            is_loop = all(ids[src] or closes for (src, _), closes in zip(draft.data, closing, strict=True))
            if all(closing):
                return None
        for slot, (src, src_slot) in enumerate(draft.data):
            if src_slot >= outputs[src]:
                return None
            if ids[src]:
                add_src(ids[src])
                add_src_slot(src_slot)
                add_dst(node)
                add_dst_slot(slot)
            elif is_loop:
                back_edges.append((src, src_slot, i, slot))
            else:
                return None
        for src in draft.control and _sort_by_name(draft.control, drafts):
            if not ids[src]:
                return None
            add_src(ids[src])
            add_src_slot(CONTROL)
            add_dst(node)
            add_dst_slot(CONTROL)
        ids[i] = node
    for src, src_slot, i, slot in back_edges:
        _refuse_other_type(drafts[src], src_slot, drafts[i], slot)
        _extend_edges(edges, [ids[src]], [src_slot], [ids[i]], [slot])
    _connect_ends(edges, len(drafts) + _FIRST_ID)
    return Wiring(list(map(drafts.__getitem__, order)), *edges)


def _sort_by_name(control: Sequence[int], drafts: Sequence[NodeDraft]) -> Sequence[int]:
    """Return the sources of control edges without duplicates, by name."""
    return control if len(control) == 1 else sorted(set(control), key=lambda src: drafts[src].name)


def _connect_columns(inputs: InputColumns, names: Sequence[str]) -> Edges:
    """Connect nodes as `connect_drafts` does, where they come in order; `names` are by node id."""
    ids = list(range(_FIRST_ID, len(names)))  # one number each, however many edges a node has
    src, dst = [ids[node] for node in inputs.src], [ids[node] for node in inputs.dst]
    dst_slot = list(chain.from_iterable(map(range, map(sub, inputs.starts[1:], inputs.starts))))
    edges: Edges = ([], [], [], [])
    start = 0
    for node in inputs.waiting:
        control = inputs.starts[node] + inputs.data_counts[node]
        _extend_edges(
            edges, src[start:control], inputs.slot[start:control], dst[start:control], dst_slot[start:control]
        )
        start = inputs.starts[node + 1]
        before = sorted(set(src[control:start]), key=names.__getitem__)
        order_only = [CONTROL] * len(before)
        _extend_edges(edges, before, order_only, [node + _FIRST_ID] * len(before), order_only)
    _extend_edges(edges, src[start:], inputs.slot[start:], dst[start:], dst_slot[start:])
    _connect_ends(edges, len(names))
    return edges


def _extend_edges(edges: Edges, *columns: Sequence[int]) -> None:
    for column, values in zip(edges, columns, strict=True):
        column.extend(values)


def _refuse_other_type(source: NodeDraft, source_slot: int, node: NodeDraft, slot: int) -> None:
    """Raise `Refused` where a loop passes a Merge another type than it began with (`GraphConstructor::MakeEdge`).

    TensorFlow's Python has checked the types of all other edges: it adds these past that check.
    """
    found, wanted = source.types[1][source_slot], node.types[0][slot]
    if wanted not in (found, base_type(found)):
        raise invalid_argument(
            f"Input {slot} of node {node.name} was passed {name_in_messages(found)} from {source.name}:{source_slot} "
            f"incompatible with expected {name_in_messages(wanted)}."
        )


def _connect_ends(edges: Edges, count: int) -> None:
    """Connect, by id, each node without in-edges to the source and each without out-edges to the sink."""
    feeds, fed = set(edges[0]), set(edges[2])
    src, dst = [_SOURCE_ID], [_SINK_ID]
    for node in range(_FIRST_ID, count):
        if node not in fed:
            src.append(_SOURCE_ID)
            dst.append(node)
        if node not in feeds:
            src.append(node)
            dst.append(_SINK_ID)
    order_only = [CONTROL] * len(src)
    _extend_edges(edges, src, order_only, dst, order_only)


def _find_inputs(inputs: Sequence[str], node: str, slots: TensorSlots) -> Inputs:
    try:
        found = list(map(slots.__getitem__, inputs))
    except KeyError as missing:
        text = missing.args[0]
        name = parse_tensor_name(text)[0]
        raise TargetError(f"node {node!r} has the input {text!r}, but no node is called {name!r}") from None
    data = [one for one in found if one[1] != CONTROL]
    if data != found[: len(data)]:
        raise invalid_argument(f"Node '{node}': Control dependencies must come after regular dependencies")
    return tuple(data), tuple([src for src, _ in found[len(data) :]])


def wrong_input_count(node: str, op: str, found: int, wanted: int, function: str = "") -> TargetError:
    """Return the refusal of a node that has another number of data inputs than its op takes."""
    where = f" of function {function!r}" if function else ""
    return TargetError(f"node {node!r}{where} has {found} inputs, but its op {op} takes {wanted}")


def _refuse_missing_outputs(drafts: Sequence[NodeDraft]) -> None:
    """Raise `TargetError` for an input from an output that a node does not have."""
    for draft in drafts:
        for src, slot in draft.data:
            outputs = len(drafts[src].types[1])
            if slot >= outputs:
                has = "1 output" if outputs == 1 else f"{outputs or 'no'} outputs"
                raise TargetError(f"node {draft.name!r} reads output {slot} of {drafts[src].name!r}, which has {has}")


def _order_drafts(drafts: Sequence[NodeDraft]) -> list[int]:
    """Return the places of drafts in TensorFlow's order."""
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
