"""Estimate the shape that a layout will have, to choose the direction of a figure's edges."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Literal

from viz.figure import Figure, Node
from viz.labels import LABEL_LIMIT
from viz.style import SCREEN, Style

_LETTER, _LINE = 6.5, 15.0  # points a letter and a line of text take
_FEWEST_LETTERS = 6  # a box is never narrower
_GAP_ACROSS, _GAP_ALONG = 20.0, 28.0  # points between nodes of a rank, and between ranks
_TAG_HEIGHT, _TAG_WIDTH = 26.0, 90.0
_GROUP_MARGIN = 30.0


def direction(figure: Figure, style: Style = SCREEN) -> Literal["down", "right"]:
    """Return the figure's direction, or for "auto" the one whose estimated shape is nearest to that of the page.

    Ties go down, as do figures without nodes.

    >>> direction(Figure(direction="right"))
    'right'
    """
    if figure.direction in ("down", "right"):
        return "down" if figure.direction == "down" else "right"
    if not figure.nodes or (figure.direction == "page" and not style.widths):
        return "down"
    down, right = _misfit(style, *size_down(figure)), _misfit(style, *_size_right(figure))
    return "down" if down <= right else "right"


def size_down(figure: Figure) -> tuple[float, float]:
    """Estimate width and height in points with edges pointing down.

    >>> size_down(Figure(nodes=(Node("a", "a"),)))
    (109.0, 51.0)
    """
    return _across(figure, _width), _along(figure, _height, _TAG_HEIGHT)


def estimate_size(figure: Figure, style: Style = SCREEN) -> tuple[float, float]:
    """Estimate width and height in points, edges pointing as they will."""
    return size_down(figure) if direction(figure, style) == "down" else _size_right(figure)


def deepest(figure: Figure) -> Node:
    """Return the node furthest from the sources: the last one in the figure's order; the figure must have nodes."""
    depth = depths(figure)
    return max(reversed(figure.nodes), key=lambda node: depth[node.id])


def depths(figure: Figure) -> dict[str, int]:
    """Number each node's rank: the longest path from a node without sources, where a labelled edge counts 2."""
    edges = [(edge.source, edge.target, 2 if edge.label else 1) for edge in figure.edges]
    return find_longest_paths([node.id for node in figure.nodes], edges)


def find_longest_paths(names: Iterable[str], edges: Iterable[tuple[str, str, int]]) -> dict[str, int]:
    """Return the length of the longest path to each node; edges are source, target and length.

    A cycle is cut before the first of its nodes, in the given order, that was reached.

    >>> find_longest_paths("abc", [("a", "b", 1), ("b", "c", 2), ("a", "c", 1)])
    {'a': 0, 'b': 1, 'c': 3}
    """
    outgoing: dict[str, list[tuple[str, int]]] = defaultdict(list)
    waiting = dict.fromkeys(names, 0)
    for source, target, length in edges:
        outgoing[source].append((target, length))
        waiting[target] += 1
    depth = dict.fromkeys(waiting, 0)
    ready = [node for node, count in waiting.items() if count == 0]
    while waiting:
        for node in ready:  # grows while it is walked
            waiting.pop(node)
            for target, length in outgoing[node]:
                if target not in waiting:
                    continue  # the edge closes a cycle
                depth[target] = max(depth[target], depth[node] + length)
                waiting[target] -= 1
                if waiting[target] == 0:
                    ready.append(target)
        reached = next((node for node in waiting if depth[node]), next(iter(waiting), None))
        ready = [] if reached is None else [reached]
    return depth


def _misfit(style: Style, width: float, height: float) -> float:
    return abs(math.log(width / height / style.aspect))


def _size_right(figure: Figure) -> tuple[float, float]:
    return _along(figure, _width, _TAG_WIDTH), _across(figure, _height)


def _across(figure: Figure, extent: Callable[[Node], float]) -> float:
    """Add up the groups' widest ranks, for groups stand side by side."""
    depth = depths(figure)
    ranks: dict[str, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for node in figure.nodes:
        ranks[node.group or ""][depth[node.id]] += extent(node) + _GAP_ACROSS
    return sum(max(rank.values()) + _GROUP_MARGIN for rank in ranks.values())


def _along(figure: Figure, extent: Callable[[Node], float], tag: float) -> float:
    depth = depths(figure)
    ranks: dict[int, float] = defaultdict(float)
    for node in figure.nodes:
        ranks[depth[node.id]] = max(ranks[depth[node.id]], extent(node))
    last = max(ranks, default=0)
    return sum(ranks.get(level, tag) + _GAP_ALONG for level in range(last + 1))


def _width(node: Node) -> float:
    request = len(f"requested {node.requested}") if node.requested else 0
    letters = max(_FEWEST_LETTERS, len(node.label), round(len(node.sublabel) * 0.8), request)
    return 20 + _LETTER * min(letters, LABEL_LIMIT)


def _height(node: Node) -> float:
    return _LINE * (1 + bool(node.sublabel) + bool(node.requested) + node.host_memory) + 8
