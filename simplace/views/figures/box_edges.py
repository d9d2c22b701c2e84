"""Collect the edges of a placed graph between the boxes of its figure, with every copy between devices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from simplace.graph.op_kinds import is_constant
from simplace.partition.transfers import Copy
from simplace.placement.placement import Placement

Ends = tuple[int, int]


@dataclass(frozen=True, slots=True)
class BoxCopies:
    """Record of the copies from one box that the same boxes of another device read, by box number."""

    source: int
    targets: tuple[int, ...]
    copies: tuple[Copy, ...]


@dataclass(frozen=True, slots=True)
class BoxEdges:
    """Record of the edges between boxes: transfers, then the data and control edges within a device, counted.

    `control` also has those between devices. No pair of boxes occurs twice.
    """

    transfers: tuple[BoxCopies, ...]
    data: dict[Ends, int]
    control: dict[Ends, int]


@dataclass(slots=True)
class _Found:
    data: dict[Ends, int] = field(default_factory=dict)
    control: dict[Ends, int] = field(default_factory=dict)


def box_edges(
    placement: Placement,
    copies: list[Copy],
    box_of: dict[int, int],
    keepers: frozenset[int],
    stands_for: Mapping[str, str] | None = None,
) -> BoxEdges:
    """Return the edges between boxes, without those that nodes folded into others (not in `keepers`) do not hand on.

    Those are control edges, and the data of constants: a constant is drawn with the first of its consumers, which
    sends nothing to the others.
    `stands_for` maps a device to the one that is drawn in its place, where that is another.
    """
    transfers = _group_copies(copies, box_of, stands_for or {})
    carried = {(one.source, target) for one in transfers for target in one.targets}
    found = _Found()
    graph = placement.graph
    for source, slot, target in zip(graph.edge_src, graph.edge_src_slot, graph.edge_dst, strict=True):
        one, other = box_of.get(source), box_of.get(target)
        if one is None or other is None or one == other or (one, other) in carried:
            continue
        if slot >= 0 and (source in keepers or not is_constant(graph.ops[source])):
            found.data[one, other] = found.data.get((one, other), 0) + 1
        elif slot < 0 and source in keepers and target in keepers:
            found.control[one, other] = found.control.get((one, other), 0) + 1
    control = {ends: count for ends, count in found.control.items() if ends not in found.data}
    return BoxEdges(transfers, dict(sorted(found.data.items())), dict(sorted(control.items())))


def without_implied(edges: dict[Ends, int], all_edges: set[Ends]) -> dict[Ends, int]:
    """Return the transitive reduction of edges, tried one by one, those between the most distant boxes first.

    `all_edges` are the edges that paths may use; what reaches what stays the same.

    >>> without_implied({(0, 1): 1, (1, 2): 1, (0, 2): 5}, {(0, 1), (1, 2), (0, 2)})
    {(0, 1): 1, (1, 2): 1}
    """
    after: dict[int, set[int]] = {}
    for one, other in all_edges:
        after.setdefault(one, set()).add(other)
    kept = dict(edges)
    for one, other in sorted(edges, key=lambda ends: (-abs(ends[1] - ends[0]), ends)):
        after[one].discard(other)
        if _has_path(after, one, other):
            del kept[one, other]
        else:
            after[one].add(other)
    return kept


def _group_copies(copies: list[Copy], box_of: dict[int, int], stands_for: Mapping[str, str]) -> tuple[BoxCopies, ...]:
    """Return the copies by the boxes at both ends; those that several boxes read, by the device they go to."""
    alone: dict[Ends, list[Copy]] = {}
    spread: dict[tuple[int, str], list[Copy]] = {}
    for copy in copies:
        if copy.is_control or copy.source == copy.target:
            continue
        source, targets = box_of[copy.producer], _list_targets([copy], box_of)
        if len(targets) == 1:
            alone.setdefault((source, targets[0]), []).append(copy)
        else:
            spread.setdefault((source, stands_for.get(copy.target, copy.target)), []).append(copy)
    made = [BoxCopies(source, (target,), tuple(group)) for (source, target), group in alone.items()]
    made += [BoxCopies(source, _list_targets(group, box_of), tuple(group)) for (source, _), group in spread.items()]
    return tuple(sorted(made, key=lambda one: (one.source, one.targets)))


def _list_targets(copies: list[Copy], box_of: dict[int, int]) -> tuple[int, ...]:
    return tuple(sorted({box_of[node] for copy in copies for node in copy.consumers}))


def _has_path(after: dict[int, set[int]], start: int, goal: int) -> bool:
    seen, waiting = {start}, [start]
    while waiting:
        for box in after.get(waiting.pop(), ()):
            if box == goal:
                return True
            if box not in seen:
                seen.add(box)
                waiting.append(box)
    return False
