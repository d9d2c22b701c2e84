"""The functions that the nodes of a graph call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any


def list_called(nodes: Iterable[Any], exists: Callable[[str], bool]) -> Iterator[str]:
    """Yield the functions that nodes call, as ops or by an attribute."""
    for node in nodes:
        if exists(node.op):
            yield node.op
        for value in node.attr.values():
            kind = value.WhichOneof("value")
            if kind == "func":
                yield value.func.name
            elif kind == "list":
                yield from (func.name for func in value.list.func)
