"""Put an Identity on every input and output of the calls whose bodies the placer inspects.

Mirrors tensorflow/core/common_runtime/isolate_placer_inspection_required_ops_pass.cc and
placer_inspection_required_ops_utils.cc.
"""

from __future__ import annotations

from simplace.graph.builder import CONTROL, GraphBuilder, Node, Origin
from simplace.graph.dtypes import DataType, base_type
from simplace.graph.op_kinds import is_partitioned_call
from simplace.lowering.op_signatures import Signatures


def needs_inspection(op: str, ref: object, node: str, signatures: Signatures) -> bool:
    """Return whether a node is a call of a function (its attribute `f`) that returns a resource."""
    if not is_partitioned_call(op):
        return False
    return any(output.dtype == DataType.DT_RESOURCE for output in signatures.function(ref, node).outputs)


def isolate_calls(graph: GraphBuilder, signatures: Signatures) -> None:
    """Isolate each call that needs inspection, by id: inputs by slot, used outputs by edge, then unused outputs."""
    names: set[str] = set()
    for node in graph.op_nodes():
        if not needs_inspection(node.op, node.attrs.get("f"), node.name, signatures):
            continue
        if not names:
            names.update(other.name for other in graph.nodes if other is not None)
        _isolate_node(graph, node, names)


def _isolate_node(graph: GraphBuilder, node: Node, names: set[str]) -> None:
    for edge in node.data_inputs():
        name = _make_unique_name(f"{edge.src.name}_{node.name}", names)
        identity = _add_identity(graph, name, node.in_types[edge.dst_slot], edge.src, edge.src_slot, node)
        graph.update_edge(identity, 0, node, edge.dst_slot)
    used = set()
    for edge in sorted(node.out_edges, key=lambda edge: edge.id):
        if edge.src_slot == CONTROL:
            continue
        used.add(edge.src_slot)
        name = _make_unique_name(f"{node.name}_{edge.dst.name}", names)
        identity = _add_identity(graph, name, node.out_types[edge.src_slot], node, edge.src_slot, node)
        graph.update_edge(identity, 0, edge.dst, edge.dst_slot)
    for slot, dtype in enumerate(node.out_types):
        if slot not in used:
            _add_identity(graph, _make_unique_name(node.name, names), dtype, node, slot, node)


def _add_identity(graph: GraphBuilder, name: str, dtype: int, src: Node, slot: int, node: Node) -> Node:
    plain = base_type(dtype)
    origin = Origin(node.origin.function, node.origin.name, node.name, "isolate")
    return graph.add_node(
        name, "Identity", attrs={"T": DataType(plain)}, origin=origin, types=((plain,), (plain,)), inputs=[(src, slot)]
    )


def _make_unique_name(name: str, names: set[str]) -> str:
    candidate = name
    counter = 0
    while candidate in names:
        candidate = f"{name}_{counter}"
        counter += 1
    names.add(candidate)
    return candidate
