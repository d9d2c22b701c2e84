"""The matrix product behind an op: b times m x k by k x n, for matrix products, contractions and convolutions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import NamedTuple

from simplace.costs.cost_model import OpCall


class Product(NamedTuple):
    """Record of a product's shape; `along_k`: both operands lie along k in memory; `is_image`: a convolution's."""

    b: int
    m: int
    n: int
    k: int
    along_k: bool = False
    is_image: bool = False


def find_product(call: OpCall) -> Product | None:
    """Return the product that an op computes; None for any other op, and where shapes do not fit it.

    >>> from simplace.costs.cost_model import Tensor
    >>> x, w, y = (Tensor("float32", s, 4 * s[0] * s[1]) for s in ((64, 16), (16, 8), (64, 8)))
    >>> find_product(OpCall("m", "MatMul", "GPU", {}, (x, w), (y,)))
    Product(b=1, m=64, n=8, k=16, along_k=False, is_image=False)
    """
    rule = _RULES.get(call.op)
    if rule is None or len(call.inputs) < 2 or not call.outputs:
        return None
    found = rule(call)
    return found if found is not None and min(found.b, found.m, found.n, found.k) > 0 else None


def _read_matmul(call: OpCall) -> Product | None:
    left, right, made = call.inputs[0].shape, call.inputs[1].shape, call.outputs[0].shape
    if min(len(left), len(right), len(made)) < 2:
        return None
    turns_left = bool(call.attrs.get("transpose_a") or call.attrs.get("adj_x"))
    turns_right = bool(call.attrs.get("transpose_b") or call.attrs.get("adj_y"))
    k = left[-2] if turns_left else left[-1]
    return Product(prod(made[:-2]), made[-2], made[-1], k, along_k=turns_right and not turns_left)


def _read_einsum(call: OpCall) -> Product | None:
    """Sort the letters: of both inputs and the output a batch, of the output and one input m or n, of none of it k."""
    equation = call.attrs.get("equation", b"")
    if not isinstance(equation, bytes) or equation.count(b",") != 1 or b"->" not in equation:
        return None
    terms, made = equation.decode().replace("...", "").split("->")
    left, right = terms.split(",")
    sizes: dict[str, int] = {}
    for letters, tensor in ((left, call.inputs[0]), (right, call.inputs[1])):
        if len(letters) != len(tensor.shape):
            return None
        sizes.update(zip(letters, tensor.shape, strict=True))
    sides = {"b": 1, "m": 1, "n": 1, "k": 1}
    for letter, size in sizes.items():
        is_made, is_left, is_right = letter in made, letter in left, letter in right
        side = ("b" if is_left and is_right else "m" if is_left else "n") if is_made else "k"
        sides[side] *= size
    return Product(sides["b"], sides["m"], sides["n"], sides["k"])


def _read_conv(call: OpCall) -> Product | None:
    weights, made = call.inputs[1].shape, call.outputs[0]
    if len(weights) < 3 or not weights[-1]:
        return None
    return Product(1, made.elements // weights[-1], weights[-1], prod(weights[:-1]), is_image=True)


def _read_conv_input_grad(call: OpCall) -> Product | None:
    weights, made = call.inputs[1].shape, call.outputs[0]
    if len(call.inputs) < 3 or len(weights) < 3 or not weights[-2] or not made.elements:
        return None
    rows = made.elements // weights[-2]
    k = call.inputs[2].elements * prod(weights[:-1]) // made.elements
    return Product(1, rows, weights[-2], k, is_image=True)


def _read_conv_filter_grad(call: OpCall) -> Product | None:
    made = call.outputs[0].shape
    if len(call.inputs) < 3 or len(made) < 3 or not made[-1]:
        return None
    return Product(1, prod(made[:-1]), made[-1], call.inputs[2].elements // made[-1], is_image=True)


_RULES: Mapping[str, Callable[[OpCall], Product | None]] = {
    **dict.fromkeys("MatMul BatchMatMul BatchMatMulV2 BatchMatMulV3 _FusedMatMul".split(), _read_matmul),
    "Einsum": _read_einsum,
    **dict.fromkeys("Conv2D Conv3D _FusedConv2D".split(), _read_conv),
    **dict.fromkeys("Conv2DBackpropInput Conv3DBackpropInputV2".split(), _read_conv_input_grad),
    **dict.fromkeys("Conv2DBackpropFilter Conv3DBackpropFilterV2".split(), _read_conv_filter_grad),
}
