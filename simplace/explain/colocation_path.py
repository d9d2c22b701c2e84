"""Walk the colocation edges from a node: its group, and the path of edges to each member."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from simplace.placement.colocation_graph import ColocationEdge

JoinsAt = Callable[[int], Iterable[ColocationEdge]]  # the colocation edges of a node


def walk_colocation_edges(joins_at: JoinsAt, start: int) -> Iterator[tuple[int, int, ColocationEdge | None]]:
    """Yield each node colocated with `start`, the nearest first, with the node and edge that led to it."""
    queue: list[tuple[int, int, ColocationEdge | None]] = [(start, start, None)]
    seen = {start}
    for step in queue:  # grows while it is walked
        yield step
        node = step[0]
        for join in joins_at(node):
            other = join.second if join.first == node else join.first
            if other not in seen:
                seen.add(other)
                queue.append((other, node, join))


def shortest_path(joins_at: JoinsAt, start: int, goal: int) -> tuple[ColocationEdge, ...]:
    """Return the shortest path of colocation edges between two nodes, () where there is none."""
    came: dict[int, tuple[int, ColocationEdge]] = {}
    for node, before, join in walk_colocation_edges(joins_at, start):
        if join is not None:
            came[node] = before, join
        if node == goal:
            break
    chain: list[ColocationEdge] = []
    while goal != start and goal in came:
        goal, join = came[goal]
        chain.append(join)
    return tuple(reversed(chain))
