"""Return the decision that makes a copy between devices necessary."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from simplace.explain import reasons as why
from simplace.partition.transfers import Copy
from simplace.placement.placement import Placement


@dataclass(frozen=True, slots=True)
class CopyCause:
    """Record of the copies that one decision causes: numbers into the placement's copies, the largest copy first.

    `reason` is the decision of a node that decided by itself, `source` the user's line of what it asked ("" unknown).
    `size` sums the known bytes.
    """

    reason: why.Reason
    source: str
    copies: tuple[int, ...]
    size: int


def group_copy_causes(placement: Placement, copies: Iterable[Copy]) -> tuple[CopyCause, ...]:
    """Return the copies by the decision behind them, most bytes first, then most copies, then the first node.

    A node that takes its device over from another leads back to that other. Decisions that agree in their kind, in
    what was requested, in the line that requested it and in the device count as one.
    """
    roots: dict[int, why.Reason] = {}
    found: dict[tuple[object, ...], list[tuple[int, Copy, why.Reason]]] = {}
    for number, copy in enumerate(copies):
        reason = _choose_cause(placement, copy, roots)
        key = (
            type(reason),
            reason.device,
            placement.graph.requested[reason.node],
            _find_source_line(placement, reason.node),
        )
        found.setdefault(key, []).append((number, copy, reason))
    return tuple(sorted((_merge_members(placement, members) for members in found.values()), key=_rank_cause))


def find_root_reason(placement: Placement, node: int) -> why.Reason:
    """Return the reason of the node from which a node's device comes in the end, itself where it decided."""
    return list(why.follow_reasons(placement, why.find_reason(placement, node)))[-1]


def _choose_cause(placement: Placement, copy: Copy, roots: dict[int, why.Reason]) -> why.Reason:
    """Return the more constrained decision of a copy's two ends, the consumer's where both are alike."""
    for node in (copy.producer, copy.consumers[0]):
        if node not in roots:
            roots[node] = find_root_reason(placement, node)
    made, used = roots[copy.producer], roots[copy.consumers[0]]
    return made if made.weight > used.weight else used


def _find_source_line(placement: Placement, node: int) -> str:
    notes = placement.notes(node)
    return notes.device_at or notes.at


def _merge_members(placement: Placement, members: list[tuple[int, Copy, why.Reason]]) -> CopyCause:
    members.sort(key=lambda member: (-(member[1].size or 0), member[0]))
    reason = min((reason for _, _, reason in members), key=lambda reason: reason.node)
    size = sum(copy.size or 0 for _, copy, _ in members)
    return CopyCause(reason, _find_source_line(placement, reason.node), tuple(number for number, _, _ in members), size)


def _rank_cause(cause: CopyCause) -> tuple[int, int, int]:
    return -cause.size, -len(cause.copies), cause.reason.node
