"""Scopes for viewers that fold nodes by their names: a large program has hundreds of arguments outside of any scope."""

from __future__ import annotations

from simplace.graph.dtypes import DataType
from simplace.graph.graph import Graph
from simplace.graph.op_kinds import ARGS, RETVALS, VARIABLE_HANDLE, VARIABLES

ARGUMENTS, STATE, RESULTS = "arguments", "variables", "results"


def find_scopes(graph: Graph) -> list[str]:
    """Return the scope of each node by id: that of its name; arguments, variables and results without one have ours.

    A scope of ours that the program has itself, or a node of that name, gets a number: "variables_1".
    """
    taken = {name.partition("/")[0] for name in graph.names}
    ours = {scope: _make_unique(scope, taken) for scope in (ARGUMENTS, STATE, RESULTS)}
    return [
        name.rpartition("/")[0] if "/" in name or not (kind := _get_kind(graph, node)) else ours[kind]
        for node, name in enumerate(graph.names)
    ]


def _get_kind(graph: Graph, node: int) -> str:
    op = graph.ops[node]
    if op in ARGS:
        return STATE if graph.out_types[node] == (DataType.DT_RESOURCE,) else ARGUMENTS
    if op in VARIABLES or op == VARIABLE_HANDLE:
        return STATE
    return RESULTS if op in RETVALS else ""


def _make_unique(scope: str, taken: set[str]) -> str:
    if scope not in taken:
        return scope
    number = 1
    while f"{scope}_{number}" in taken:
        number += 1
    return f"{scope}_{number}"
