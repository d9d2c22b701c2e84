"""Replace ParallelConcat by a buffer that each input is written into.

Mirrors tensorflow/core/common_runtime/parallel_concat_optimizer.cc.
"""

from __future__ import annotations

from simplace.graph.builder import CONTROL, GraphBuilder, Node
from simplace.graph.node_def import ShapeAttr
from simplace.graph.op_kinds import PARALLEL_CONCAT
from simplace.lowering.accumulate_n_optimizer import make_node_adder, replace_node
from simplace.lowering.inline_function_utils import require_attr


def remove_parallel_concat(graph: GraphBuilder) -> None:
    """Replace every ParallelConcat that is in the graph now."""
    for node in [node for node in graph.op_nodes() if node.op == PARALLEL_CONCAT]:
        _replace_parallel_concat(graph, node)


def _replace_parallel_concat(graph: GraphBuilder, node: Node) -> None:
    make = make_node_adder(graph, node, "remove ParallelConcat")
    dtype = node.attrs["T"]
    start = make("", "_ParallelConcatStart", {"shape": require_attr(node, "shape", ShapeAttr), "dtype": dtype})
    updates = []
    for edge in node.in_edges:
        if edge.dst_slot == CONTROL:
            graph.add_control_edge(edge.src, start)
            continue
        attrs = {"T": dtype, "loc": edge.dst_slot}
        updates.append(make("", "_ParallelConcatUpdate", attrs, [(start, 0), (edge.src, edge.src_slot)]))
    replace_node(graph, node, make(node.name, "Identity", {"T": dtype}, [(start, 0)], updates))
