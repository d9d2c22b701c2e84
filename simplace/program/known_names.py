"""Names of nodes as the program's author knows them: layers by their own names, without scopes that TensorFlow adds."""

from __future__ import annotations

import re

from simplace.program.placed_graph import PlacedGraph

Path = tuple[str, ...]

_NUMBER = re.compile(r"(_\d+)+$")
# Scopes that TensorFlow adds: around inlined calls, and per replica, which its device says already.
_MADE_SCOPE = re.compile(r"(Func|_\d+|(Stateful)?PartitionedCall(_\d+)?|replica_\d+)$")
_BODIES = ("body", "cond", "then", "else")


def get_known_name(placed: PlacedGraph, node: int) -> str:
    """Return a node's name with the layers in it as the user named them."""
    name, own = placed.graph.names[node], placed.graph.origins[node].name
    known = placed.notes(node).known_as
    return name.removesuffix(own) + known if known and name.endswith(own) else name


def tidy_path(name: str) -> Path:
    """Return the parts of a node's name that the user wrote, without the scopes that TensorFlow adds.

    >>> tidy_path("StatefulPartitionedCall/while/body/_1/while/dense/MatMul")
    ('while', 'body', 'dense', 'MatMul')
    """
    *scopes, last = name.split("/")
    kept: list[str] = []
    for part in scopes:
        again = bool(kept) and kept[-1] in _BODIES and strip_number(part) in map(strip_number, kept[:-1])
        if part and not again and not _MADE_SCOPE.match(part):
            kept.append(part)
    return tuple(kept) if kept and _MADE_SCOPE.match(last) else (*kept, last)


def strip_number(name: str) -> str:
    """Return a name without the numbers that make it unique.

    >>> strip_number("dense_12_1"), strip_number("conv2d"), strip_number("_7")
    ('dense', 'conv2d', '_7')
    """
    return _NUMBER.sub("", name) or name
