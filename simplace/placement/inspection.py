"""Calls that return resources: look into the called function for what its arguments and results must share.

Mirrors InspectingPlacer and ApplyIOColocationGroups (tensorflow/core/common_runtime/{inspecting_placer,
colocation_graph}.cc). TensorFlow walks such calls in the order of a pointer set; here they go by id.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from simplace.graph.build import CONTROL
from simplace.graph.dtypes import DataType
from simplace.graph.model import Graph
from simplace.graph.node_def import FuncRef
from simplace.placement.colocation import ColocationGroups, Join, JoinKind
from simplace.refusal import Refusal, Refused

_CALLS = ("PartitionedCall", "StatefulPartitionedCall")


@dataclass(frozen=True)
class CalledBody:
    """Hold the graph of a called function, with the ids of its argument and result nodes in signature order."""

    graph: Graph
    arguments: tuple[int, ...]
    results: tuple[int, ...]


class CalledBodies(Protocol):
    """Build the body of a function that a call node names."""

    def __call__(self, call: FuncRef) -> CalledBody:
        """Return the body, isolated as TensorFlow does before it looks inside."""
        ...


def inspected_calls(graph: Graph) -> frozenset[int]:
    """List the calls that return a resource (PlacerInspectionRequiredOpChecker)."""
    return frozenset(
        node for node, op in enumerate(graph.ops) if op in _CALLS and DataType.DT_RESOURCE in graph.out_types[node]
    )


def join_through_calls(
    groups: ColocationGroups, inspected: frozenset[int], bodies: CalledBodies, stack: tuple[str, ...] = ()
) -> None:
    """Tie the neighbours of every inspected call together the way the called function does."""
    for node in sorted(inspected):
        call = groups.graph.attrs[node]["f"]
        assert isinstance(call, FuncRef), "the function of a call is a function attribute"
        if call.name in stack:
            raise _recursion(groups.graph, node, call.name, stack)
        _join_neighbours(groups, node, _look_inside(groups, bodies, call, stack))


@dataclass(frozen=True, slots=True)
class _Inside:
    """Hold the colocation of a called function: the root of each argument and result."""

    groups: ColocationGroups
    arguments: tuple[int, ...]
    results: tuple[int, ...]


def _look_inside(groups: ColocationGroups, bodies: CalledBodies, call: FuncRef, stack: tuple[str, ...]) -> _Inside:
    body = bodies(call)
    inner = groups.for_body(body.graph)
    inner.add_members()
    inspected = inspected_calls(body.graph)
    inner.join_resource_edges(inspected)
    join_through_calls(inner, inspected, bodies, (*stack, call.name))
    inner.join_classes()
    return _Inside(inner, tuple(inner.root(i) for i in body.arguments), tuple(inner.root(i) for i in body.results))


def _join_neighbours(groups: ColocationGroups, node: int, inside: _Inside) -> None:
    graph = groups.graph
    tied: dict[int, list[tuple[int, bool]]] = {root: [] for root in (*inside.arguments, *inside.results)}
    for slot, edge in enumerate(graph.data_in_edges(node)):
        tied[inside.arguments[slot]].append((graph.edge_src[edge], False))
    for edge in graph.out_edges[node]:
        if graph.edge_src_slot[edge] == CONTROL:
            continue
        target = graph.edge_dst[edge]
        takes_resource = graph.in_types[target][graph.edge_dst_slot[edge]] == DataType.DT_RESOURCE
        tied[inside.results[graph.edge_src_slot[edge]]].append((target, takes_resource))
    for root, neighbours in tied.items():
        _tie(groups, neighbours)
        if neighbours:
            inner = inside.groups
            groups.limit(neighbours[0][0], inner.requested(root), inner.resource(root), inner.types(root))


def _tie(groups: ColocationGroups, neighbours: Sequence[tuple[int, bool]]) -> None:
    for other, takes_resource in neighbours[1:]:
        if takes_resource:
            groups.join_resource(neighbours[0][0], other, JoinKind.CALL)
        else:
            groups.join(Join(JoinKind.CALL, neighbours[0][0], other))


def _recursion(graph: Graph, node: int, name: str, stack: tuple[str, ...]) -> Refused:
    message = (
        f"Recursive function calls are not supported. Node {{{{node {graph.names[node]}}}}} inside the body of "
        f"{{{{function_node {stack[-1] if stack else ''}}}}} calls function {{{{function_node {name}}}}} which is "
        f"already present in the call stack:\n  {' -> '.join((*stack, name))}"
    )
    return Refused(Refusal("UNIMPLEMENTED", message, node))
