"""Choose which name scopes of a graph to open, so that a figure has few enough boxes, alike on devices that are alike.

Nodes sit in a tree by path. A step of a path is a name without its number first, then the name itself: siblings
that differ only in a number share a box until it is opened. A scope is opened on all devices at once.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from simplace.program.known_names import Path, strip_number

OTHERS = "#others"
_FEW = 3  # siblings of a kind that are drawn one by one
_SMALL = 3  # nodes: siblings of a kind with fewer each stay together
_MANY = 12  # siblings of a kind, however large, that stay together
_REPEATS = 8  # nodes of one name: a scope made mostly of such stays closed, for its inside is a knot


@dataclass(slots=True)
class Scope:
    """Record of a scope: its nodes, how many there are per device, and its parts by their step."""

    path: Path
    nodes: list[int] = field(default_factory=list)
    sizes: Counter[str] = field(default_factory=Counter)
    parts: dict[str, Scope] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Return the number of nodes on the device that has most of them."""
        return max(self.sizes.values())


def insert_stems(parts: Iterable[str]) -> Path:
    """Return a path with the step before each part that its siblings of a kind share; "#" marks a step as it is.

    >>> insert_stems(["#results", "dense_1"])
    ('#results', 'dense*', 'dense_1')
    """
    return tuple(
        step for part in parts for step in ((part,) if part.startswith("#") else (f"{strip_number(part)}*", part))
    )


def open_scopes(
    paths: Mapping[int, Path], devices: Mapping[int, str], limit: int, root: Scope | None = None
) -> dict[int, Path]:
    """Return the path of each node's box: the nodes of one device and path share it.

    `root` is what `build_tree` returns of the paths and devices, for who asks several times.

    The largest scopes are opened first, as long as all boxes number at most `limit`; where the outermost scopes alone
    exceed it, the smallest of them are put together under `OTHERS`, those with a "#" last of all.
    """
    closed = _close_scopes(root or build_tree(paths, devices), limit)
    found = {node: scope.path for scope in closed for node in scope.nodes}
    return {node: found.get(node, (OTHERS,)) for node in paths}


def build_tree(paths: Mapping[int, Path], devices: Mapping[int, str]) -> Scope:
    """Return the scope around all nodes, whose paths and devices are given."""
    root = Scope(())
    for node, path in paths.items():
        at = root
        at.sizes[devices[node]] += 1
        for step in path:
            if step not in at.parts:
                at.parts[step] = Scope((*at.path, step))
            at = at.parts[step]
            at.nodes.append(node)
            at.sizes[devices[node]] += 1
    return root


def _close_scopes(root: Scope, limit: int) -> list[Scope]:
    """Return the scopes that are drawn as a box a device each; no node of the others is in one of them."""
    outermost = sorted(root.parts.values(), key=lambda scope: (not _is_marked(scope), -scope.size, scope.path))
    waiting: list[tuple[int, Path, Scope]] = []
    closed: list[Scope] = []
    boxes, has_others = 0, False
    room = limit if _count_boxes(outermost) <= limit else limit - len(root.sizes)
    for scope in outermost:
        if boxes + len(scope.sizes) > room:
            has_others = True
            continue
        boxes += len(scope.sizes)
        heapq.heappush(waiting, (-scope.size, scope.path, scope))
    boxes += len(root.sizes) if has_others else 0
    while waiting:
        *_, scope = heapq.heappop(waiting)
        more = _count_boxes(scope.parts.values()) - len(scope.sizes)
        if not scope.parts or (more > 0 and (boxes + more > limit or not _worth_opening(scope))):
            closed.append(scope)
            continue
        boxes += more
        for part in scope.parts.values():
            heapq.heappush(waiting, (-part.size, part.path, part))
    return closed


def _is_marked(scope: Scope) -> bool:
    return scope.path[0].startswith("#")


def _count_boxes(scopes: Iterable[Scope]) -> int:
    return sum(len(scope.sizes) for scope in scopes)


def _worth_opening(scope: Scope) -> bool:
    each = max(Counter(device for part in scope.parts.values() for device in part.sizes).values())
    if scope.path[-1].endswith("*"):
        return each <= _FEW or (each <= _MANY and scope.size >= _SMALL * each)
    if scope.path[-1].startswith("#"):
        return each <= 2 * _FEW
    repeated = sum(part.size for part in scope.parts.values() if part.size >= _REPEATS and _is_name(part))
    return 2 * repeated <= scope.size


def _is_name(scope: Scope) -> bool:
    """Return whether a scope contains nodes of one name that differ only in its number."""
    return all(step.startswith("#") for inner in scope.parts.values() for step in inner.parts)
