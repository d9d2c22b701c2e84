"""Optimize each device's subgraph before it runs, as TensorFlow does whether or not Grappler runs.

Mirrors tensorflow/core/common_runtime/graph_optimizer.cc at the level L1, which is what TensorFlow takes by default.
"""

from __future__ import annotations

from simplace.graph.op_kinds import CONSTANTS
from simplace.partition.constant_folding import FOLDED, fold_constants, is_folded
from simplace.partition.dead_nodes import is_run_as_a_whole, remove_dead_nodes
from simplace.partition.graph_partition import PartitionedGraph
from simplace.partition.optimizer_cse import merge_equal_nodes, order_nodes

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
        folded = fold_constants(kept, unfolded)
        left = _drop_folded(folded)
        order = order_nodes(kept) if folded is kept else _order_as_folded(kept, left)
        merged = merge_equal_nodes(kept, order)
        if merged is not kept:
            left = _drop_folded(fold_constants(remove_dead_nodes(merged, "merged"), unfolded))
        kept, before = left, kept
        if kept is before:
            break
    return kept


def _drop_folded(graph: PartitionedGraph) -> PartitionedGraph:
    return remove_dead_nodes(graph, FOLDED, keeps_memory_copies=False)


def _order_as_folded(graph: PartitionedGraph, left: PartitionedGraph) -> list[int]:
    """Order the nodes as TensorFlow takes them, which has folded constants by then.

    What is `left` of a graph are constants and what depends on more: each among its own as there. What is folded comes
    between.
    """
    made = {node.origin for i, node in enumerate(left.nodes) if is_folded(left, i)}
    place = {(left.nodes[i].device, left.nodes[i].name): k for k, i in enumerate(order_nodes(left))}

    def rank(i: int) -> tuple[int, int]:
        node = graph.nodes[i]
        name = (node.device, node.name)
        if name not in place or node.origin in made:
            return 1, 0
        return (0 if node.op in CONSTANTS else 2), place[name]

    return sorted(order_nodes(graph), key=rank)
