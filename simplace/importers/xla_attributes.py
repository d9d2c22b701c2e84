"""Take from a program the attributes that hand its functions to XLA, so that TensorFlow would place what is in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from simplace.graph.node_def import NodeDef
from simplace.graph.op_kinds import MUST_COMPILE
from simplace.program.program import Program


def without_jit(program: Program) -> Program:
    """Return the program with all calls as TensorFlow places them without `jit_compile`."""
    graph = program.graph
    library = {
        name: replace(function, attrs=_without(function.attrs), nodes=_without_all(function.nodes))
        for name, function in graph.library.items()
    }
    return replace(program, graph=replace(graph, nodes=_without_all(graph.nodes), library=library))


def _without_all(nodes: tuple[NodeDef, ...]) -> tuple[NodeDef, ...]:
    return tuple(node._replace(attrs=_without(node.attrs)) for node in nodes)


def _without(attrs: Mapping[str, Any]) -> Mapping[str, Any]:
    if MUST_COMPILE not in attrs:
        return attrs
    return {name: value for name, value in attrs.items() if name != MUST_COMPILE}
