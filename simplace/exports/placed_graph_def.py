"""Write a placed graph as a GraphDef whose nodes have their assigned devices.

The graph is the one that TensorFlow's placer sees: calls inlined, control flow lowered. What the program requested and
why the device was chosen are attributes that begin with an underscore, which TensorFlow passes over. Large
constants and those of strings are written without their content, functions that are still called (of datasets, say) by
name only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from google.protobuf import text_format

from simplace.explain import reasons as why
from simplace.explain.sentences import state_reason
from simplace.exports.steering import escape_proto
from simplace.graph import protos
from simplace.graph.attr_values import write_attrs
from simplace.graph.graph import Graph
from simplace.lowering.inline_function_utils import GROUP
from simplace.placement.placement import Placement

_CLASS = "_class"
REQUESTED, BECAUSE, SOURCE = "_simplace_requested", "_simplace_because", "_simplace_line"


def graph_def(placement: Placement, names: Sequence[str] | None = None) -> Any:
    """Return the `GraphDef` message: nodes by id, control inputs last; `names`, by id, stand for their own."""
    graph = placement.graph if names is None else _rename_nodes(placement.graph, names)
    message = protos.message_class("GraphDef")()
    message.versions.producer = placement.program.graph.producer
    for i in graph.op_ids:
        _write_node(message.node.add(), placement, graph, i)
    return message


def _rename_nodes(graph: Graph, names: Sequence[str]) -> Graph:
    """Return the graph with other names, also where nodes are colocated by name."""
    labels = {GROUP + old.encode(): GROUP + new.encode() for old, new in zip(graph.names, names, strict=True)}
    attrs = [
        {**own, _CLASS: tuple(labels.get(one, one) for one in own[_CLASS])}
        if isinstance(own.get(_CLASS), tuple)
        else own
        for own in graph.attrs
    ]
    return replace(graph, names=list(names), attrs=attrs)


def write_binary(placement: Placement, names: Sequence[str] | None = None) -> bytes:
    """Return the graph as a binary GraphDef, the same bytes for the same placement; `names` as for `graph_def`."""
    written: bytes = graph_def(placement, names).SerializeToString(deterministic=True)
    return written


def write_text(placement: Placement) -> bytes:
    """Return the graph in protobuf's text form, a field a line."""
    written: str = text_format.MessageToString(graph_def(placement))
    return escape_proto(written).encode()


def _write_node(message: Any, placement: Placement, graph: Graph, i: int) -> None:
    message.name, message.op = graph.names[i], graph.ops[i]
    message.device = placement.device(i)
    message.input.extend(graph.input_names(i))
    write_attrs(message.attr, graph.attrs[i])
    notes = {REQUESTED: graph.requested[i], SOURCE: placement.notes(i).at}
    if i in placement.decisions:
        notes[BECAUSE] = str(state_reason(placement, why.find_reason(placement, i)))
    for key, value in notes.items():
        if value:
            message.attr[key].s = value.encode()
