"""The names of the variables that a traced function has captured."""

from __future__ import annotations

from typing import Any


def name_captured_variables(graph: Any) -> dict[str, str]:
    """Map the tensor of each captured variable inside a `FuncGraph` to the variable's name, which has no ":0".

    Variables that are deleted by now are left out: `FuncGraph.variables` raises an error for any such one.
    """
    held = getattr(graph, "_weak_variables", ())  # without them captured variables have no names
    living = [variable for variable in (each() for each in held) if variable is not None]
    names = {id(_find_handle(variable)): variable.name.partition(":")[0] for variable in living}
    return {inner.name: names[id(outer)] for outer, inner in graph.captures if id(outer) in names}


def _find_handle(variable: Any) -> Any:
    """Return the handle that a function captures; a packed variable has another one for each of its devices."""
    packed = getattr(variable, "packed_handle", None)
    return variable.handle if packed is None else packed
