"""Optimize each device's subgraph before it runs, as TensorFlow does whether or not Grappler runs.

Mirrors tensorflow/core/common_runtime/graph_optimizer.cc at the level L1, which is what TensorFlow takes by default.
"""

from __future__ import annotations

from simplace.partition.constant_folding import FOLDED, fold_constants
from simplace.partition.dead_nodes import is_run_as_a_whole, remove_dead_nodes
from simplace.partition.graph_partition import PartitionedGraph
from simplace.partition.optimizer_cse import merge_equal_nodes

_ROUNDS = 10  # kMaxRounds: what was folded leaves other nodes to be merged


def optimize_subgraphs(graph: PartitionedGraph, unfolded: int = 0) -> PartitionedGraph:
    """Return the graph of what runs in a step; no tensor is folded whose first dimension is `unfolded` (0: any may be).

    TensorFlow folds constants first, and then merges what has equal values. Here values are not known: nodes that
    compute the same are merged first. A graph that is not run as a whole, such as one of a file, stays as it is.
    """
    if not is_run_as_a_whole(graph):
        return graph
    kept = remove_dead_nodes(graph)
    for _ in range(_ROUNDS):
        merged = remove_dead_nodes(merge_equal_nodes(kept), "merged")
        kept, before = remove_dead_nodes(fold_constants(merged, unfolded), FOLDED, keeps_memory_copies=False), kept
        if kept is before:
            break
    return kept
