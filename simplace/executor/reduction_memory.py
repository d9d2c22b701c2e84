"""What a reduction copies first, so that what it reduces lies together.

Mirrors tensorflow/core/kernels/reduction_ops_common.h: up to three runs of dimensions, of which every other one is
reduced, are taken as they are; of more, all of the input is put in another order.
"""

from __future__ import annotations

from collections.abc import Sequence

from simplace.costs.cost_model import Tensor

_MOST_RUNS = 3

REDUCTIONS = frozenset("Sum Mean Max Min Prod All Any EuclideanNorm".split())


def find_shuffled(inputs: Sequence[Tensor], outputs: Sequence[Tensor], axes: Sequence[int] | None) -> list[int]:
    """Return the bytes of the copy, [] for none; without `axes`, the shapes tell what is reduced, as far as they do.

    >>> x = Tensor("float32", (2, 5, 3, 4), 480)
    >>> find_shuffled([x], [Tensor("float32", (2, 1, 3, 1), 24)], None)
    [480]
    >>> find_shuffled([x], [Tensor("float32", (2, 3), 24)], (1, -1)), find_shuffled([x], [Tensor("", (3,), 12)], None)
    ([480], [])
    """
    if not inputs or not outputs:
        return []
    given = inputs[0].shape
    if axes is None:
        reduced = _find_reduced(given, outputs[0].shape)
    else:
        chosen = {axis % max(len(given), 1) for axis in axes}
        reduced = [place in chosen for place, dim in enumerate(given) if dim != 1]
    runs = sum(one != before for before, one in zip([None, *reduced], reduced, strict=False))
    return [inputs[0].size] if runs > _MOST_RUNS else []


def _find_reduced(given: Sequence[int], made: Sequence[int]) -> list[bool]:
    """Tell of each dimension of more than one element whether it is reduced, from the first on."""
    if len(given) == len(made):
        return [dim != left for dim, left in zip(given, made, strict=True) if dim != 1]
    left, found = [dim for dim in made if dim != 1], list[bool]()
    for dim in (dim for dim in given if dim != 1):
        is_kept = bool(left) and dim == left[0]
        found.append(not is_kept)
        left = left[1:] if is_kept else left
    return found
