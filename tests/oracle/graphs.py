"""Graphs as text protos: matrix products whose order of execution is worth a look."""

from __future__ import annotations

import random

_T = 'attr { key: "T" value { type: DT_FLOAT } }'


def layers(count: int = 8, width: int = 5, size: int = 256) -> str:
    """Make layers of equal products, each of two random ones before it; each is used four times at most."""
    chance = random.Random(0)
    lines = [*_start(size), *(_node(f"x{i}", "Identity", ["x"]) for i in range(width))]
    before = [f"x{i}" for i in range(width)]
    for layer in range(count):
        now = [f"m{layer}_{i}" for i in range(width)]
        left, right = chance.sample(before, width), chance.sample(before, width)
        lines += [_node(name, "MatMul", [a, b]) for name, a, b in zip(now, left, right, strict=True)]
        before = now
    return "".join(lines)


def chain_beside_others(length: int = 10, others: int = 18, size: int = 256) -> str:
    """Make one long chain of products, and many that depend on nothing else."""
    lines = [*_start(size), *(_node(f"s{i}", "Identity", ["x"]) for i in range(4))]
    lines += [_node(f"p{i}", "MatMul", [f"s{i % 3}", f"s{i % 3}"]) for i in range(min(others, 12))]
    last = "s3"
    for i in range(length):
        lines.append(_node(f"c{i}", "MatMul", [last, last]))
        last = f"c{i}"
    return "".join(lines)


def tiny_chains(length: int = 6) -> str:
    """Make two chains of tiny ops, which become cheap once their costs are known."""
    lines = [*_start(2), _node("a0", "Neg", ["x"]), _node("b0", "Neg", ["x"])]
    for i in range(1, length):
        lines += [_node(f"{chain}{i}", "Neg", [f"{chain}{i - 1}"]) for chain in "ab"]
    return "".join(lines)


def constant_beside_input() -> str:
    """Make a result of an input and of the negative of a constant."""
    shapes = ' attr { key: "_output_shapes" value { list { shape { } } } }'
    placeholder = 'attr { key: "dtype" value { type: DT_FLOAT } }'
    retval = _T + ' attr { key: "index" value { i: 0 } }'
    value = "tensor { dtype: DT_FLOAT tensor_shape { } float_val: 0.5 }"
    nodes = [
        _const("c", "DT_FLOAT", value), _node("n", "Neg", ["c"], _T + shapes),
        _node("x", "Placeholder", [], placeholder), _node("y", "AddV2", ["x", "n"]),
        _node("r", "_Retval", ["y"], retval),
    ]  # fmt: skip
    return "".join(nodes)


def _start(size: int) -> list[str]:
    dims = f"tensor {{ dtype: DT_INT32 tensor_shape {{ dim {{ size: 2 }} }} int_val: {size} int_val: {size} }}"
    value = "tensor { dtype: DT_FLOAT tensor_shape { } float_val: 0.001 }"
    return [
        _const("dims", "DT_INT32", dims),
        _const("value", "DT_FLOAT", value),
        _node("x", "Fill", ["dims", "value"], _T + ' attr { key: "index_type" value { type: DT_INT32 } }'),
    ]


def _const(name: str, dtype: str, tensor: str) -> str:
    attrs = f'attr {{ key: "dtype" value {{ type: {dtype} }} }} attr {{ key: "value" value {{ {tensor} }} }}'
    return _node(name, "Const", [], attrs)


def _node(name: str, op: str, inputs: list[str], attrs: str = _T) -> str:
    listed = "".join(f' input: "{one}"' for one in inputs)
    return f'node {{ name: "{name}" op: "{op}"{listed} device: "/device:CPU:0" {attrs} }}\n'
