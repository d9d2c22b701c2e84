"""Select from a library the functions that one of them reaches."""

from __future__ import annotations

from collections.abc import Mapping

from simplace.graph.node_def import FuncRef, FunctionDef


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
