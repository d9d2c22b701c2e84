"""Summarise an op's kernels: a row per device type and combination of types."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from itertools import product

from simplace.errors import UnknownOpError, join_alternatives
from simplace.graph.dtypes import DataType
from simplace.graph.node_def import AttrValue
from simplace.kernels.kernel_lookup import DEFAULT, SYMBOLIC
from simplace.kernels.registry import Kernel, KernelTable


@dataclass(frozen=True, slots=True)
class KernelRow:
    """Record of what one registration offers for one choice of its constrained attributes.

    `types` pairs an attribute with a `DataType` or another constrained value; an attribute without constraint is
    absent. `host_memory` is sorted. The device type "DEFAULT" stands for every one.
    """

    op: str
    device_type: str
    types: tuple[tuple[str, AttrValue], ...]
    host_memory: tuple[str, ...]
    priority: int
    label: str


def kernel_rows(table: KernelTable, op: str, dtype: DataType | None = None) -> tuple[KernelRow, ...]:
    """List an op's kernels, a row per registration and allowed value, sorted by device type, label and types.

    With `dtype` only the rows that accept it: where an attribute has that type, or no type attribute is constrained.
    XLA's symbolic device types are left out: no device ever has one. Raise `UnknownOpError`, with the closest names,
    for an op that the table does not know.

    >>> kernels = [Kernel("Foo", "GPU", constraints=(("T", frozenset({DataType.DT_HALF, DataType.DT_FLOAT})),))]
    >>> from simplace.kernels.registry import OpDef
    >>> [row.types for row in kernel_rows(KernelTable.from_records("t", [OpDef("Foo")], kernels), "Foo")]
    [(('T', <DataType.DT_FLOAT: 1>),), (('T', <DataType.DT_HALF: 19>),)]
    """
    known_op(table, op)
    kernels = [kernel for kernel in table.kernels(op) if not kernel.device_type.endswith(SYMBOLIC)]
    rows = {row for kernel in kernels for row in _kernel_rows(kernel) if dtype is None or _accepts_dtype(row, dtype)}
    return tuple(sorted(rows, key=_sort_key))


def closest_ops(table: KernelTable, op: str, cutoff: float = 0.6) -> list[str]:
    """List the few ops of a table whose names are most like `op`, the closest first."""
    by_lower = {name.lower(): name for name in table.op_names()}
    return [by_lower[name] for name in difflib.get_close_matches(op.lower(), by_lower, n=4, cutoff=cutoff)]


def hint_at_op(table: KernelTable, op: str) -> str:
    """Return what to do about an op of a graph that is not registered: often a custom op, sometimes a misspelling."""
    close = closest_ops(table, op, cutoff=0.8)
    hint = f"did you mean {join_alternatives(close)}? else" if close else "if it is your own,"
    return f"{hint} describe it in a file for --kernels"


def known_op(table: KernelTable, op: str) -> str:
    """Return the op's name back; raise `UnknownOpError` with the closest names where the table does not know it."""
    if table.op(op) is not None:
        return op
    close = closest_ops(table, op)
    hint = f"did you mean {join_alternatives(close)}?" if close else "names are CamelCase, e.g. MatMul"
    raise UnknownOpError(f"TensorFlow {table.name} has no op {op!r}; {hint}")


def _kernel_rows(kernel: Kernel) -> list[KernelRow]:
    names = [name for name, _ in kernel.constraints]
    values = [sorted(allowed) for _, allowed in kernel.constraints]
    host_memory = tuple(sorted(kernel.host_memory))
    return [
        KernelRow(
            kernel.op,
            kernel.device_type,
            tuple(zip(names, one, strict=True)),
            host_memory,
            kernel.priority,
            kernel.label,
        )
        for one in product(*values)
    ]


def _accepts_dtype(row: KernelRow, dtype: DataType) -> bool:
    types = [value for _, value in row.types if isinstance(value, DataType)]
    return not types or dtype in types


def _sort_key(row: KernelRow) -> tuple[object, ...]:
    known = ("CPU", "GPU", DEFAULT)
    place = known.index(row.device_type) if row.device_type in known else len(known)
    return place, row.device_type, row.label, str(row.types), row.types and row.types[0][0], -row.priority
