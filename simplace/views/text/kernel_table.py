"""Tabulate the data types of an op against the device types that have kernels for them."""

from __future__ import annotations

from simplace.devices.device_set import type_order
from simplace.graph import dtypes
from simplace.graph.dtypes import DataType
from simplace.graph.node_def import AttrValue
from simplace.kernels.kernel_lookup import DEFAULT, SYMBOLIC, nearest_dtype
from simplace.kernels.op_kernels import KernelRow
from simplace.kernels.registry import KernelTable
from viz import Column, Table

Types = tuple[tuple[str, AttrValue], ...]  # a value per constrained attribute
Choices = tuple[tuple[str, tuple[AttrValue, ...]], ...]  # the values per constrained attribute that share a row

_FUNCTIONALIZED = frozenset({"Enter", "Exit", "LoopCond", "Merge", "NextIteration", "Switch"})


def kernel_table(op: str, rows: tuple[KernelRow, ...], name: str, notes: tuple[str, ...] = ()) -> Table:
    """Return the table of an op's data types by device types; arguments kept in host memory are named in the cell.

    A device type without a kernel of its own shows the one that is registered for every device type, as "default". A
    kernel without constraints counts for every data type. Data types with the same answers share a row.
    """
    devices = sorted({"CPU", "GPU"} | {row.device_type for row in rows} - {DEFAULT}, key=type_order)
    by_types: dict[Types, dict[str, str]] = {}
    for row in sorted(rows, key=lambda row: len(row.types)):
        by_types.setdefault(row.types, dict(by_types.get((), {})))[row.device_type] = _kernel_cell(row)
    answers = {types: tuple(_choose_cell(found, kind) for kind in devices) for types, found in by_types.items()}
    joined = _merge_rows(answers)
    others = "all others" if len(joined) > 1 else "all"
    table_rows = [(_types_text(choices) or others, *cells) for choices, cells in joined]
    table_rows.sort(key=lambda cells: cells[0] == others)
    heads = [Column(kind, wrapped=True) for kind in devices]
    footer = "; ".join([*notes, f"kernel table: TensorFlow {name}"])
    return Table((Column("data types", wrapped=True), *heads), tuple(table_rows), f"kernels of {op}", footer)


def _choose_cell(found: dict[str, str], kind: str) -> str:
    return found.get(kind) or found.get(DEFAULT, "-").replace("yes", "default")


def _merge_rows(answers: dict[Types, tuple[str, ...]]) -> list[tuple[Choices, tuple[str, ...]]]:
    """Merge rows that differ in the values of one attribute only, the last attribute first."""
    rows: list[tuple[Choices, tuple[str, ...]]] = [
        (tuple((attr, (value,)) for attr, value in types), cells) for types, cells in answers.items()
    ]
    for at in reversed(range(max((len(choices) for choices, _ in rows), default=0))):
        merged: dict[tuple[Choices, Choices, str, tuple[str, ...]], tuple[AttrValue, ...]] = {}
        rest = [row for row in rows if len(row[0]) <= at]
        for choices, cells in rows:
            if len(choices) > at:
                attr, values = choices[at]
                key = (choices[:at], choices[at + 1 :], attr, cells)
                merged[key] = (*merged.get(key, ()), *values)
        rows = [((*before, (attr, values), *after), cells) for (before, after, attr, cells), values in merged.items()]
        rows += rest
    return rows


def lacking_notes(table: KernelTable, op: str, dtype: DataType) -> tuple[str, ...]:
    """Return, for CPU and GPU, that an op has no kernel for a data type, and which one is nearest."""
    op_def = table.op(op)
    assert op_def is not None, "the rows were found, so the op is known"
    attrs = {attr: dtype for attr, kind in op_def.attr_types.items() if kind == "type"}
    notes = []
    for kind in ("CPU", "GPU"):
        nearest = nearest_dtype(table, op, kind, {**op_def.defaults, **attrs})
        if nearest is not None:
            instead = dtypes.format_dtype(nearest.instead)
            notes.append(f"no {kind} kernel with {nearest.attr}={dtypes.format_dtype(dtype)}; the nearest is {instead}")
    return tuple(notes)


def xla_note(table: KernelTable, op: str) -> str:
    """Return whether XLA can compile an op, as a note; "" for control flow that becomes functions before XLA.

    An op without a kernel for XLA's symbolic device types makes all that contains it uncompilable
    (RecursiveCompilabilityChecker in tensorflow/compiler/jit/compilability_check_util.cc).
    """
    if op in _FUNCTIONALIZED:
        return ""
    if any(kernel.device_type.endswith(SYMBOLIC) for kernel in table.kernels(op)):
        return "XLA has a kernel: jit_compile supports it"
    return "XLA has no kernel: jit_compile does not support it"


def _kernel_cell(row: KernelRow) -> str:
    notes = [f"host: {', '.join(row.host_memory)}"] if row.host_memory else []
    notes += [f"priority {row.priority}"] if row.priority else []
    notes += [f"label {row.label}"] if row.label else []
    return f"yes ({'; '.join(notes)})" if notes else "yes"


def _types_text(choices: Choices) -> str:
    return " ".join(f"{attr}={', '.join(_name_value(value) for value in values)}" for attr, values in choices)


def _name_value(value: AttrValue) -> str:
    if isinstance(value, bytes):
        return value.decode()
    return dtypes.format_dtype(value) if isinstance(value, DataType) else str(value)
