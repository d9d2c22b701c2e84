"""The functions that the nodes of a graph call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from simplace.graph.op_kinds import IMPLEMENTS

CPU_COPY = "simplace_cpu_"  # what the name of a function begins with that is a copy to be computed on the CPU


def list_called(nodes: Iterable[Any], exists: Callable[[str], bool]) -> Iterator[str]:
    """Yield the functions that nodes call, as ops or by an attribute."""
    for node in nodes:
        if exists(node.op):
            yield node.op
        for value in node.attr.values():
            yield from (func.name for func in _list_references(value))


def list_alike(definition: Any, names: Iterable[str], find: Callable[[str], Any]) -> Iterator[str]:
    """Yield the functions among `names` that may stand in for one: those of its interface, also itself.

    `find` returns the definition of a function by its name.
    """
    interface = _read_interface(definition)
    if interface:
        yield from (name for name in names if _read_interface(find(name)) == interface)


def _read_interface(definition: Any) -> bytes:
    """Return the interface that a function implements, b"" for one that implements none."""
    return bytes(definition.attr[IMPLEMENTS].s) if IMPLEMENTS in definition.attr else b""


def rename_called(node: Any, copies: Mapping[str, str]) -> None:
    """Make a node call copies of functions, by their names, as op and by attributes."""
    node.op = copies.get(node.op, node.op)
    for value in node.attr.values():
        for func in _list_references(value):
            func.name = copies.get(func.name, func.name)


def read_function_name(value: Any) -> str:
    """Return the name of the function that is the value of an eager op's attribute."""
    name = getattr(value, "name", value)
    return name.decode() if isinstance(name, bytes) else str(name)


def _list_references(value: Any) -> Iterable[Any]:
    kind = value.WhichOneof("value")
    return (value.func,) if kind == "func" else value.list.func if kind == "list" else ()
