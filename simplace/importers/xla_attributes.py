"""Remove the attributes by which XLA compiles a program's functions, so that TensorFlow would place their ops.

With `jit_compile` come two of them (`_generate_tracing_options` of
tensorflow/python/eager/polymorphic_function/polymorphic_function.py): the other keeps calls from being inlined.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from simplace.graph.node_def import NodeDef
from simplace.graph.op_kinds import MUST_COMPILE, NO_INLINE
from simplace.program.program import Program


def drop_jit(program: Program) -> Program:
    """Return the program with all calls as TensorFlow places them without `jit_compile`."""
    graph = program.graph
    library = {
        name: replace(function, attrs=_drop_from_attrs(function.attrs), nodes=_drop_from_nodes(function.nodes))
        for name, function in graph.library.items()
    }
    return replace(program, graph=replace(graph, nodes=_drop_from_nodes(graph.nodes), library=library))


def call_without_jit(program: Program, function: str, device: str) -> Program:
    """Return a program that is one function, compiled whole, as it is called on a device without `jit_compile`."""
    inputs = range(len(program.graph.library[function].inputs))
    devices = tuple(program.resources[i].device if i in program.resources else device for i in inputs)
    alone = replace(program, graph=replace(program.graph, nodes=()), kind="function", function=function)
    return drop_jit(replace(alone, arg_devices=devices))


def _drop_from_nodes(nodes: tuple[NodeDef, ...]) -> tuple[NodeDef, ...]:
    return tuple(node._replace(attrs=_drop_from_attrs(node.attrs)) for node in nodes)


def _drop_from_attrs(attrs: Mapping[str, Any]) -> Mapping[str, Any]:
    if MUST_COMPILE not in attrs:
        return attrs
    dropped = {MUST_COMPILE, NO_INLINE} if attrs[MUST_COMPILE] is True else {MUST_COMPILE}
    return {name: value for name, value in attrs.items() if name not in dropped}
