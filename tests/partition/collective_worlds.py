"""Members of collectives on two GPUs, as GraphDef text."""

from __future__ import annotations

from tests.worlds import constant, node


def scalar(name: str, value: int) -> str:
    tensor = f"tensor {{ dtype: DT_INT32 tensor_shape {{ }} int_val: {value} }}"
    return node(name, "Const", dtype="DT_INT32", extra=f'attr {{ key: "value" value {{ {tensor} }} }}')


def member(name: str, value: str, gpu: int, key: str, op: str = "CollectiveReduceV2", size: str = "two") -> str:
    extra = '' if op != "CollectiveReduceV2" else (
        'attr { key: "merge_op" value { s: "Add" } } attr { key: "final_op" value { s: "Id" } }'
    )  # fmt: skip
    return node(name, op, value, size, "group", key, device=f"/GPU:{gpu}", extra=extra)


SHARED = [scalar("two", 2), scalar("group", 1)]
INPUTS = [constant(f"x{i}", (3, 4), device=f"/GPU:{i}") for i in (0, 1)]
