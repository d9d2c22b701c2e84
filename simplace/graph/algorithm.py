"""Walks over a graph that more than one of its forms needs.

Mirrors `PruneForReverseReachability` of tensorflow/core/graph/algorithm.cc, and the order in which
tensorflow/core/common_runtime/graph_constructor.cc takes nodes (`GraphConstructor::Convert`).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterable, MutableSequence
from typing import TypeVar

N = TypeVar("N", bound=Hashable)  # a node, or its id or name


def reverse_reachable(targets: Iterable[N], predecessors: Callable[[N], Iterable[N]]) -> set[N]:
    """Return the nodes that targets depend on, themselves included.

    >>> sorted(reverse_reachable([3], lambda node: {3: [1], 1: [0]}.get(node, [])))
    [0, 1, 3]
    """
    reached = list(targets)
    found = set(reached)
    for node in reached:  # grows while it is walked
        for before in predecessors(node):
            if before not in found:
                found.add(before)
                reached.append(before)
    return found


def order_by_inputs(pending: MutableSequence[int], successors: Callable[[int], Iterable[int]]) -> list[int]:
    """Order nodes so that the first one whose inputs are all there comes first (Kahn's algorithm); a cycle is left out.

    `pending` counts what each node waits for, and is counted down.

    >>> order_by_inputs([1, 0, 1], {0: [], 1: [2], 2: [0]}.__getitem__)
    [1, 2, 0]
    """
    ready = [node for node, count in enumerate(pending) if count == 0]
    order = []
    while ready:
        node = heapq.heappop(ready)
        order.append(node)
        for after in successors(node):
            pending[after] -= 1
            if pending[after] == 0:
                heapq.heappush(ready, after)
    return order
