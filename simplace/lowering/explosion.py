"""Refuse functions that call each other so often that inlining would make more nodes than fit into memory.

Thirty functions, each of which calls the next one twice, are a thousand million nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from simplace.errors import TargetError
from simplace.graph.builder import Node
from simplace.graph.node_def import FuncRef, NodeDef
from simplace.graph.op_kinds import CASES, IFS, WHILES, is_partitioned_call
from simplace.lowering.op_signatures import Signatures

MOST_NODES = 1_000_000
_LOWERED = IFS | CASES | WHILES


def refuse_explosion(nodes: Iterable[Node], signatures: Signatures, *, inline_calls: bool) -> None:
    """Raise `TargetError` where inlining would make more than `MOST_NODES` nodes, before any is made.

    Without `inline_calls`, calls count in nothing but what is lowered.
    """
    sizes: dict[str, int] = {}
    total = 0
    for node in nodes:
        if inline_calls or node.op in _LOWERED:
            total += sum(_count_nodes(name, signatures, sizes) for name in _called_functions(node, signatures))
        if total > MOST_NODES:
            raise TargetError(
                f"inlining all functions that node {node.name!r} calls, directly and indirectly, would create "
                f"{total:,} nodes; the limit is {MOST_NODES:,}"
            )


def _count_nodes(name: str, signatures: Signatures, sizes: dict[str, int]) -> int:
    """Count the nodes of a function with all that it calls, depth first; one that calls itself counts once."""
    waiting = [name]
    while waiting:
        last = waiting[-1]
        called = [one for node in signatures.library[last].nodes for one in _called_functions(node, signatures)]
        unknown = [one for one in called if one not in sizes]
        if last not in sizes and unknown:
            sizes[last] = 0  # so that a cycle ends
            waiting += unknown
            continue
        sizes[last] = len(signatures.library[last].nodes) + sum(sizes[one] for one in called)
        waiting.pop()
    return sizes[name]


def _called_functions(node: Node | NodeDef, signatures: Signatures) -> Iterator[str]:
    """Yield the functions of the library that a node is replaced by, one as often as it is."""
    if node.op in signatures.library:
        yield node.op
    elif is_partitioned_call(node.op) or node.op in _LOWERED:
        for value in node.attrs.values():
            yield from _referenced_functions(value, signatures)


def _referenced_functions(value: Any, signatures: Signatures) -> Iterator[str]:
    for one in value if isinstance(value, tuple) else (value,):
        if isinstance(one, FuncRef) and one.name in signatures.library:
            yield one.name
