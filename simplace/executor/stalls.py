"""Why a step does not end: a node waits for an input that never comes."""

from __future__ import annotations

from collections.abc import Sequence

from simplace.errors import SimplaceError
from simplace.graph.control_flow_info import build_control_flow_info, find_mixed_frames, name_frame
from simplace.partition.graph_partition import PartitionedGraph


def require_ended(graph: PartitionedGraph, step_ends: Sequence[int], steps: int) -> None:
    """Raise `SimplaceError` where not all steps ended, since a node has inputs from different frames of loops.

    TensorFlow refuses to run such a graph (`BuildControlFlowInfo` of graph/control_flow.cc).
    """
    if len(step_ends) < steps:
        name = _find_between_frames(graph)
        assert name, "every node that can run does run"
        raise SimplaceError(
            f"a step does not end: {name} has inputs from different frames of loops, so that TensorFlow refuses to run "
            "it; give each input of a loop an Enter"
        )


def _find_between_frames(graph: PartitionedGraph) -> str:
    """Return the first node whose inputs are from different frames, "" if there is none."""
    ops = [node.op for node in graph.nodes]
    behind: list[list[int]] = [[] for _ in ops]
    for node, edges in enumerate(graph.ins):
        for edge in edges:
            behind[edge.src].append(node)
    sources = [node for node, edges in enumerate(graph.ins) if not edges]
    info = build_control_flow_info(ops, behind.__getitem__, sources)
    mixed = find_mixed_frames(ops, behind.__getitem__, info, lambda enter: name_frame(graph.attrs_of(enter)))
    return "" if mixed is None else f"{graph.nodes[mixed.node].name} ({ops[mixed.node]})"
