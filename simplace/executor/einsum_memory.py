"""What an Einsum allocates besides its output, on any device: operands and a product that are put in another order.

Mirrors tensorflow/core/kernels/linalg/einsum_op_impl.h: the labels of each operand are sorted by their kind, and its
dimensions with them, unless those that stay and those that are summed over have only changed places.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from math import prod

from simplace.costs.cost_model import Tensor

_ARROW, _ELLIPSIS = "->", "..."
_BROADCAST, _BATCH, _FREE, _CONTRACTED, _REDUCED = range(5)  # EinsumDimensionType
_CHANGED_PLACES = {_BROADCAST: 0, _BATCH: 1, _CONTRACTED: 2, _FREE: 3, _REDUCED: 4}
_Kinds = dict[str, tuple[int, int]]  # of a label, and its number


def list_einsum_scratch(equation: str, inputs: Sequence[Tensor], output: Tensor) -> list[int]:
    """List the bytes that a kernel allocates before its output, in order; [] where labels are repeated.

    So, too, where a tensor has not as many dimensions as its term has labels: nobody knows its shape.

    >>> x, y = Tensor("float32", (2, 3, 4), 96), Tensor("float32", (4, 5), 80)
    >>> list_einsum_scratch("abc,cd->abd", [x, y], Tensor("float32", (2, 3, 5), 120))
    []
    >>> list_einsum_scratch("bac,cd->dab", [x, y], Tensor("float32", (5, 3, 2), 120))
    [120]
    >>> q, k = Tensor("float32", (2, 3, 4, 5), 480), Tensor("float32", (2, 3, 4, 5), 480)
    >>> list_einsum_scratch("bnhd,bmhd->bhnm", [q, k], Tensor("float32", (2, 4, 3, 3), 288))
    [480, 480]
    >>> list_einsum_scratch("bnhd,bmhd->bhnm", [q, Tensor("float32", (32,), 128)], Tensor("float32", (32,), 128))
    []
    """
    left, arrow, right = equation.replace(" ", "").partition(_ARROW)
    terms = left.split(",")
    if not arrow or len(terms) != len(inputs):
        return []
    named = dict.fromkeys(label for label in (left + right).replace(_ELLIPSIS, "") if label != ",")
    labels = [_spread(term, len(tensor.shape)) for term, tensor in zip(terms, inputs, strict=True)]
    made = _spread(right, len(output.shape))
    every = dict.fromkeys([*named, *chain(*labels, made)])
    kinds: _Kinds = {label: (_find_kind(label, labels, made), place) for place, label in enumerate(every)}
    tensors = zip((*labels, made), (*inputs, output), strict=True)
    if any(len(set(each)) < len(each) or len(each) != len(tensor.shape) for each, tensor in tensors):
        return []
    allocated: list[int] = []
    free: list[str] = []
    for each, tensor in zip(labels, inputs, strict=True):
        ordered = each if _have_changed_places(each, kinds) else sorted(each, key=kinds.__getitem__)
        if ordered != each and len(each) > 1:
            allocated.append(tensor.size)
        reduced = prod(dim for label, dim in zip(each, tensor.shape, strict=True) if kinds[label][0] == _REDUCED)
        if reduced > 1:
            allocated.append(tensor.size // reduced)
        free += [label for label in ordered if kinds[label][0] == _FREE]
    if len(inputs) > 1:
        allocated.append(output.size)
    shared = sorted((label for label in made if kinds[label][0] in (_BROADCAST, _BATCH)), key=kinds.__getitem__)
    if [*shared, *free] != made and len(made) > 1:
        allocated.append(output.size)
    return allocated[:-1]


def _spread(term: str, rank: int) -> list[str]:
    """List the labels of the dimensions of a term; those that the ellipsis stands for have two characters."""
    before, ellipsis, after = term.partition(_ELLIPSIS)
    several = rank - len(before) - len(after) if ellipsis else 0
    return [*before, *(f".{place}" for place in range(several)), *after]


def _find_kind(label: str, labels: Sequence[Sequence[str]], made: Sequence[str]) -> int:
    if len(label) > 1:
        return _BROADCAST
    is_unique = sum(label in each for each in labels) < 2
    if label in made:
        return _FREE if is_unique else _BATCH
    return _REDUCED if is_unique else _CONTRACTED


def _have_changed_places(labels: Sequence[str], kinds: _Kinds) -> bool:
    """Return whether labels are in order but for those that stay and those that are summed over."""
    keys = [(_CHANGED_PLACES[kinds[label][0]], kinds[label][1]) for label in labels]
    return keys == sorted(keys)
