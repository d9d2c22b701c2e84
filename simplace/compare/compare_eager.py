"""Compare where eager ops go with what TensorFlow logged of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from simplace.compare.compare_placements import Agreement, Difference, compare_placement
from simplace.placement.eager.eager_placement import EagerPlacement
from simplace.program.observation import ObservedEagerOp


def compare_eager(placed: Iterable[tuple[str, EagerPlacement, ObservedEagerOp]]) -> Agreement:
    """Compare op by op: its device, its inputs' and results' devices where they were logged, and whether it is refused.

    The text before each pair names the op in differences.
    """
    total, found = 0, []
    for name, ours, theirs in placed:
        total += 1
        first = next(_differences(name, ours, theirs), None)
        if first is not None:
            found.append(first)
    return Agreement(total - len(found), total, tuple(found))


def _differences(name: str, ours: EagerPlacement, theirs: ObservedEagerOp) -> Iterator[Difference]:
    op = ours.op.op
    refusals = (ours.refusal.code if ours.refusal else "", theirs.refused.code if theirs.refused else "")
    if refusals[0] != refusals[1]:
        yield Difference(name, op, refusals[0] or ours.device, refusals[1] or theirs.device)
    elif theirs.device and theirs.device != ours.device:
        yield Difference(name, op, ours.device, theirs.device)
    if ours.body is not None and theirs.log:
        for each in compare_placement(ours.body, theirs.log, theirs.refused).differences:
            yield Difference(f"{name}, {each.node}", each.op, each.ours, each.theirs)
