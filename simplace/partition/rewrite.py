"""Rewrite a placed graph into the one that TensorFlow cuts: what happens to it after the placer.

In order: NCCL ops are replaced, small constants replicated, control flow moved to its neighbours, control loops added.
Optimisers that look at values and ops (Grappler, XLA) are not replayed. A session prunes its graph to a run after the
first of these.
"""

from __future__ import annotations

from simplace.partition import constants, loops, nccl
from simplace.partition.draft import Draft, Rewritten
from simplace.placement.placement import Placement


def rewrite(placement: Placement) -> Rewritten:
    """Do all that happens; often there is nothing to do, and the placement itself comes back.

    The placement must not be a refused one.
    """
    assert placement.refusal is None, "TensorFlow cuts only what it placed"
    has_nccl, has_constants = nccl.may_apply(placement), constants.may_apply(placement)
    has_loops = loops.may_apply(placement)
    if not (has_nccl or has_constants or has_loops):
        return Rewritten(placement, tuple(range(len(placement.graph))))
    draft = Draft(placement)
    if has_nccl:
        nccl.replace_nccl(draft)
    if has_constants:
        constants.replicate_constants(draft)
    if has_loops:
        loops.move_to_neighbours(draft)
        loops.ControlLoops(draft).add()
    return draft.finished()


def before_pruning(placement: Placement) -> Placement:
    """Return the graph that a session prunes for its runs."""
    if not nccl.may_apply(placement):
        return placement
    draft = Draft(placement)
    nccl.replace_nccl(draft)
    return draft.finished().placement
