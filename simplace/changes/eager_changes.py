"""Compare what two runs did outside of functions: on which device each op of a line ran, and how often."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from simplace.placement.eager.eager_placement import PlacedEager

_Key = tuple[str, str]  # the user's line, the op


@dataclass(frozen=True, slots=True)
class EagerMove:
    """Record of an op of a line that runs elsewhere, or another number of times: the counts by full device name.

    A device is "" where TensorFlow refuses the op.
    """

    at: str
    op: str
    before: Mapping[str, int]
    after: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class EagerChanges:
    """Record of what differs outside of functions, in the order of the lines' first run; `compared` counts all ops."""

    moves: tuple[EagerMove, ...]
    compared: int


def compare_eager_ops(before: PlacedEager | None, after: PlacedEager | None) -> EagerChanges:
    """Compare the eager ops of two results by line and op; None is a result without any."""
    ours, theirs = _count_by_device(before), _count_by_device(after)
    keys = list(dict.fromkeys((*ours, *theirs)))
    nothing: Counter[str] = Counter()
    moves = [
        EagerMove(*key, dict(ours.get(key, nothing)), dict(theirs.get(key, nothing)))
        for key in keys
        if ours.get(key, nothing) != theirs.get(key, nothing)
    ]
    return EagerChanges(tuple(moves), len(keys))


def _count_by_device(eager: PlacedEager | None) -> dict[_Key, Counter[str]]:
    found: dict[_Key, Counter[str]] = {}
    for each in eager.ops if eager is not None else ():
        found.setdefault((each.op.at, each.op.op), Counter())[each.placement.device] += each.times
    return found
