"""Find the functions of a library that a node calls, or that one of them reaches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

from simplace.graph.node_def import FuncRef, FunctionDef
from simplace.graph.op_kinds import IMPLEMENTS, is_partitioned_call


def find_callee(op: str, attrs: Mapping[str, Any], library: Mapping[str, FunctionDef]) -> FuncRef | None:
    """Return what a node calls, None where it is no call of a function that the library has."""
    called = attrs.get("f") if is_partitioned_call(op) else FuncRef(op, attrs)
    return called if isinstance(called, FuncRef) and called.name in library else None


def select_reached(function: FunctionDef, library: Mapping[str, FunctionDef]) -> dict[str, FunctionDef]:
    """Return the functions that a function reaches, itself first.

    One that stands in for another is reached with it (`ReachableFunctions` of framework/function.cc).
    """
    found = {function.name: function}
    waiting = [function]
    while waiting:
        reached = waiting.pop()
        names = [name for node in reached.nodes for name in (node.op, *list_referred(node.attrs))]
        if IMPLEMENTS in reached.attrs:
            names += [each.name for each in library.values() if each.attrs.get(IMPLEMENTS) == reached.attrs[IMPLEMENTS]]
        new = {name: library[name] for name in names if name in library and name not in found}
        found.update(new)
        waiting += new.values()
    return found


def reach_all(attrs: Iterable[Mapping[str, Any]], library: Mapping[str, FunctionDef]) -> tuple[str, ...]:
    """Return the names of the functions that nodes with such attributes reach."""
    called = dict.fromkeys(name for each in attrs for name in list_referred(each) if name in library)
    return tuple(dict.fromkeys(chain.from_iterable(select_reached(library[name], library) for name in called)))


def list_referred(attrs: Mapping[str, Any]) -> list[str]:
    """Return the names of the functions that attributes of a node refer to."""
    values = [one for value in attrs.values() for one in (value if isinstance(value, tuple) else (value,))]
    return [value.name for value in values if isinstance(value, FuncRef)]
