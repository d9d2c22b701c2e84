"""Walks over a graph that more than one of its forms needs.

Mirrors `PruneForReverseReachability` and `GetReversePostOrder` of tensorflow/core/graph/algorithm.cc, and the order in
which tensorflow/core/common_runtime/graph_constructor.cc takes nodes (`GraphConstructor::Convert`).
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


def order_by_postorder(starts: Iterable[N], successors: Callable[[N], Iterable[N]]) -> list[N]:
    """Order what starts lead to so that a depth-first search has left the last node first, cycles included.

    Of several successors the last one is searched first, so the first one comes first, with what only it leads to.

    >>> order_by_postorder([0], {0: [1, 2], 1: [3], 2: [3], 3: [0]}.__getitem__)
    [0, 1, 2, 3]
    """
    left: list[N] = []
    visited: set[N] = set()
    work = [(start, False) for start in starts]
    while work:
        node, is_done = work.pop()
        if is_done:
            left.append(node)
        elif node not in visited:
            visited.add(node)
            work.append((node, True))
            work += [(after, False) for after in successors(node) if after not in visited]
    left.reverse()
    return left
