"""Remove the attributes by which XLA compiles a program's functions, so that TensorFlow would place their ops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from simplace.graph.node_def import NodeDef
from simplace.graph.op_kinds import MUST_COMPILE
from simplace.program.program import Program


def drop_jit(program: Program) -> Program:
    """Return the program with all calls as TensorFlow places them without `jit_compile`."""
    graph = program.graph
    library = {
        name: replace(function, attrs=_drop_from_attrs(function.attrs), nodes=_drop_from_nodes(function.nodes))
        for name, function in graph.library.items()
    }
    return replace(program, graph=replace(graph, nodes=_drop_from_nodes(graph.nodes), library=library))


def _drop_from_nodes(nodes: tuple[NodeDef, ...]) -> tuple[NodeDef, ...]:
    return tuple(node._replace(attrs=_drop_from_attrs(node.attrs)) for node in nodes)


def _drop_from_attrs(attrs: Mapping[str, Any]) -> Mapping[str, Any]:
    if MUST_COMPILE not in attrs:
        return attrs
    return {name: value for name, value in attrs.items() if name != MUST_COMPILE}
