"""Rewrite a placed graph into the one that TensorFlow partitions: the passes after the placer.

In order: NCCL ops are replaced, small constants replicated, nodes on a composite device replicated, control flow moved
to its neighbours, control loops added. Optimisers that look at values and ops (Grappler, XLA) are not replayed. A
session prunes its graph to a run after the first of these.
"""

from __future__ import annotations

from simplace.partition import control_loops, nccl_rewrite, replicate_constants_pass, replicate_per_replica_nodes
from simplace.partition.rewritten_graph import Draft, Rewritten
from simplace.program.placed_graph import PlacedGraph


def rewrite_placed_graph(placed: PlacedGraph) -> Rewritten:
    """Apply all passes; where none applies, return the placed graph itself.

    Every node must have a device.
    """
    assert placed.is_whole, "TensorFlow partitions only what it placed"
    has_nccl, has_constants = nccl_rewrite.may_apply(placed), replicate_constants_pass.may_apply(placed)
    has_loops, has_replicas = control_loops.may_apply(placed), replicate_per_replica_nodes.may_apply(placed)
    if not (has_nccl or has_constants or has_loops or has_replicas):
        return Rewritten(placed, tuple(range(len(placed.graph))))
    draft = Draft(placed)
    if has_nccl:
        nccl_rewrite.replace_nccl(draft)
    if has_constants:
        replicate_constants_pass.replicate_constants(draft)
    if has_replicas:
        replicate_per_replica_nodes.replicate_nodes(draft)
    if has_loops:
        control_loops.move_to_neighbours(draft)
        control_loops.ControlLoops(draft).add()
    return draft.finished()


def before_pruning(placed: PlacedGraph) -> PlacedGraph:
    """Return the graph that a session prunes for its runs."""
    if not nccl_rewrite.may_apply(placed):
        return placed
    draft = Draft(placed)
    nccl_rewrite.replace_nccl(draft)
    return draft.finished().placed
