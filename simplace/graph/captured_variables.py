"""The names of the variables that a traced function has captured."""

from __future__ import annotations

from typing import Any


def name_captured_variables(graph: Any) -> dict[str, str]:
    """Map the tensor of each captured variable inside a `FuncGraph` to the variable's name, which has no ":0".

    Variables that are deleted by now are left out: `FuncGraph.variables` raises an error for any such one.
    """
    held = getattr(graph, "_weak_variables", ())  # without them captured variables have no names
    living = [variable for variable in (each() for each in held) if variable is not None]
    names = {id(variable.handle): variable.name.partition(":")[0] for variable in living}
    return {inner.name: names[id(outer)] for outer, inner in graph.captures if id(outer) in names}
