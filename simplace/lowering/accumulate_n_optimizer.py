"""Replace AccumulateNV2 by a temporary variable that the inputs are added to, or by AddN inside loops.

Mirrors tensorflow/core/common_runtime/accumulate_n_optimizer.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from simplace.graph.builder import CONTROL, GraphBuilder, Node, Origin, control_inputs
from simplace.graph.control_flow_info import ROOT, MixedFrames, build_control_flow_info, find_mixed_frames, name_frame
from simplace.graph.dtypes import DataType
from simplace.graph.node_def import ShapeAttr, TensorInfo
from simplace.graph.op_kinds import ACCUMULATE_N
from simplace.lowering.inline_function_utils import COLOCATION
from simplace.program.status import Refused, invalid_argument

_INT32 = DataType.DT_INT32


def remove_accumulate_n(graph: GraphBuilder) -> None:
    """Replace every AccumulateNV2 that is in the graph now.

    Raises `Refused` where one is found in a graph with a node, any node, whose inputs are from different loop frames.
    """
    found = [node for node in graph.op_nodes() if node.op == ACCUMULATE_N]
    if not found:
        return
    frames = loop_frames(graph)
    for node in found:
        enter = graph.node(frames[node.id]) if frames[node.id] != ROOT else None
        if enter is None or enter.attrs.get("parallel_iterations") == 1:
            _use_variable(graph, node)
        else:
            _use_add_n(graph, node)


def loop_frames(graph: GraphBuilder) -> list[int]:
    """List by node id the Enter that opens the innermost loop around each node, `ROOT` outside of loops.

    Raises `Refused` for a node whose inputs are from different frames, as `BuildControlFlowInfo` does.
    """
    ops = ["" if node is None else node.op for node in graph.nodes]

    def successors(node: int) -> list[int]:
        found = graph.nodes[node]
        return [] if found is None else [edge.dst.id for edge in found.out_edges if edge.dst is not graph.sink]

    info = build_control_flow_info(ops, successors, [graph.source.id])
    mixed = find_mixed_frames(ops, successors, info, lambda enter: name_frame(graph.node(enter).attrs))
    if mixed is not None:
        raise _refuse_frames(graph, mixed)
    return info.frame


def make_node_adder(graph: GraphBuilder, node: Node, made_by: str) -> Callable[..., Node]:
    """Return a function that adds `name, op, attrs, inputs, after` with the device of `node`.

    A `_class` that is one string, not a list, is passed on; `name` "" takes a new one.
    """
    colocation = node.attrs.get(COLOCATION)
    own = {COLOCATION: colocation} if isinstance(colocation, bytes) and colocation else {}
    origin = Origin(node.origin.function, node.origin.name, node.name, made_by)

    def make(
        name: str,
        op: str,
        attrs: Mapping[str, Any],
        inputs: list[tuple[Node, int]] | None = None,
        after: list[Node] | None = None,
    ) -> Node:
        return graph.add_node(
            name or graph.new_name(f"{node.name}/Internal"),
            op,
            device=node.device,
            attrs={**own, **attrs},
            origin=origin,
            inputs=[*(inputs or []), *control_inputs(after or [])],
        )

    return make


def replace_node(graph: GraphBuilder, old: Node, new: Node) -> None:
    """Move the consumers of a node with one output to another node, then remove it."""
    for edge in old.out_edges:
        if edge.src_slot == CONTROL:
            graph.add_control_edge(new, edge.dst)
        else:
            graph.add_edge(new, 0, edge.dst, edge.dst_slot)
    graph.remove_node(old)


def _refuse_frames(graph: GraphBuilder, mixed: MixedFrames) -> Refused:
    node, src, first = (graph.node(one).name for one in (mixed.node, mixed.src, mixed.first))
    return invalid_argument(
        f"{{{{node {node}}}}} has inputs from different frames. The input {{{{node {src}}}}} is in frame "
        f"'{mixed.src_frame}'. The input {{{{node {first}}}}} is in frame '{mixed.first_frame}'."
    )


def _use_variable(graph: GraphBuilder, node: Node) -> None:
    make = make_node_adder(graph, node, "remove AccumulateNV2")
    dtype = node.attrs["T"]
    typed = {"T": dtype}
    data = [(edge.src, edge.src_slot) for edge in node.in_edges if edge.dst_slot != CONTROL]
    control = [edge.src for edge in node.in_edges if edge.dst_slot == CONTROL]
    name = {"var_name": f"{node.name}/Internal/Accumulator".encode()}

    variable = make("", "TemporaryVariable", {"shape": ShapeAttr((0,)), "dtype": dtype, **name})
    shape = make("", "Shape", {**typed, "out_type": _INT32}, [data[0]])
    zero = make("", "Const", {"dtype": dtype, "value": TensorInfo(dtype, (), 0)})
    fill = make("", "Fill", {**typed, "index_type": _INT32}, [(shape, 0), (zero, 0)])
    assign = make("", "Assign", {**typed, "validate_shape": False, "use_locking": True}, [(variable, 0), (fill, 0)])
    adds = [make("", "AssignAdd", {**typed, "use_locking": True}, [(assign, 0), tensor]) for tensor in data]
    result = make(node.name, "DestroyTemporaryVariable", {**typed, **name}, [(assign, 0)])

    for src in control:
        graph.add_control_edge(src, assign)
    for add in adds:
        graph.add_control_edge(add, result)
    replace_node(graph, node, result)


def _use_add_n(graph: GraphBuilder, node: Node) -> None:
    data = [(edge.src, edge.src_slot) for edge in node.in_edges if edge.dst_slot != CONTROL]
    control = [edge.src for edge in node.in_edges if edge.dst_slot == CONTROL]
    attrs = {"N": len(data), "T": node.attrs["T"]}
    new = make_node_adder(graph, node, "remove AccumulateNV2")(node.name, "AddN", attrs, data, control)
    replace_node(graph, node, new)
