"""Find the functions of a library that a node calls, or that one of them reaches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simplace.graph.node_def import FuncRef, FunctionDef
from simplace.graph.op_kinds import is_partitioned_call


def find_callee(op: str, attrs: Mapping[str, Any], library: Mapping[str, FunctionDef]) -> FuncRef | None:
    """Return what a node calls, None where it is no call of a function that the library has."""
    called = attrs.get("f") if is_partitioned_call(op) else FuncRef(op, attrs)
    return called if isinstance(called, FuncRef) and called.name in library else None


def select_reached(function: FunctionDef, library: Mapping[str, FunctionDef]) -> dict[str, FunctionDef]:
    """Return the functions that a function reaches, itself first."""
    found = {function.name: function}
    waiting = [function]
    while waiting:
        for node in waiting.pop().nodes:
            values = [one for value in node.attrs.values() for one in (value if isinstance(value, tuple) else (value,))]
            names = [node.op, *(value.name for value in values if isinstance(value, FuncRef))]
            new = {name: library[name] for name in names if name in library and name not in found}
            found.update(new)
            waiting += new.values()
    return found
