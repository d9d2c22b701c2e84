"""The attributes of eager ops, back from plain values that JSON can hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from simplace.graph import graph_def
from simplace.graph.node_def import ShapeAttr

# Attributes of eager ops by kind: what comes back of what JSON makes of them. Others are as they are.
_ATTRS: Mapping[str, Callable[[Any], Any]] = {
    "type": graph_def.data_type,
    "list(type)": lambda numbers: tuple(map(graph_def.data_type, numbers)),
    "string": str.encode,
    "int": int,
    "bool": bool,
    "shape": lambda dims: ShapeAttr(None if dims is None else tuple(dims)),
}


def read_attrs(attrs: Iterable[Sequence[Any]]) -> dict[str, Any]:
    """Return the attributes of an eager op by name, of which the name, the kind and a plain value were written."""
    return {name: _ATTRS[kind](value) for name, kind, value in attrs}
