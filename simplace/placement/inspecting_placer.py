"""Colocate a graph's nodes, inspecting the called functions whose arguments and results share a resource.

Mirrors ColocationGraph::Initialize, ApplyIOColocationGroups and InspectingPlacer
(tensorflow/core/common_runtime/{colocation_graph,inspecting_placer}.cc). TensorFlow keeps such calls in
a set of pointers; here they are walked as that set does while it is small and its buckets do not collide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from simplace.graph.builder import CONTROL
from simplace.graph.dtypes import DataType
from simplace.graph.graph import Graph
from simplace.graph.node_def import FuncRef
from simplace.graph.op_kinds import is_partitioned_call
from simplace.placement.colocation_graph import ColocationEdge, ColocationEdgeKind, ColocationGroups
from simplace.placement.host_only import keep_host_only_variants
from simplace.program.status import Refusal, Refused


@dataclass(frozen=True)
class CalledBody:
    """Record of the graph of a called function, with the ids of its argument and result nodes in signature order."""

    graph: Graph
    arguments: tuple[int, ...]
    results: tuple[int, ...]


class CalledBodies(Protocol):
    """Build the body of a function that a call node names."""

    def __call__(self, call: FuncRef) -> CalledBody:
        """Return the body, isolated as TensorFlow does before it looks inside."""
        ...


@dataclass(frozen=True, slots=True)
class CallStack:
    """Record of the call stack down to the function being inspected ("" is a graph outside of functions).

    `frames` are the functions above `current`, outermost first, each with the name of its node that calls on.
    """

    current: str = ""
    frames: tuple[tuple[str, str], ...] = ()

    def __contains__(self, function: str) -> bool:
        return function in (self.current, *(name for name, _ in self.frames))

    def push(self, node: str, function: str) -> CallStack:
        """Return the stack inside the function that `node` calls."""
        return CallStack(function, (*self.frames, (self.current, node)))

    def __str__(self) -> str:
        """Describe the stack as FunctionStack::FormatForError does."""
        lines = []
        called = [*(name for name, _ in self.frames[1:]), self.current]
        for (function, node), callee in zip(self.frames, called, strict=True):
            start = f"Function {_format_function(function)}" if function else "Graph"
            lines.append(f"{start} contains node {_format_node(node)}")
            lines.append(f"Node {_format_node(node)} calls function {_format_function(callee)}")
        return "\n  ".join(lines)


def colocate_graph(groups: ColocationGroups, bodies: CalledBodies, stack: CallStack) -> None:
    """Colocate the nodes of a graph and narrow each group to the devices that all its members allow."""
    groups.add_members()
    inspected = inspected_calls(groups.graph)
    groups.join_resource_edges(inspected)
    for node in reversed(_by_first_edge(groups.graph, inspected)):  # a new element goes to the front of the set
        _join_neighbours(groups, node, _look_inside(groups, bodies, node, stack))
    groups.join_classes()
    keep_host_only_variants(groups)
    groups.exclude_xla()


def inspected_calls(graph: Graph) -> frozenset[int]:
    """List the calls that return a resource (PlacerInspectionRequiredOpChecker)."""
    return frozenset(
        node
        for node, op in enumerate(graph.ops)
        if is_partitioned_call(op) and DataType.DT_RESOURCE in graph.out_types[node]
    )


@dataclass(frozen=True, slots=True)
class _Inside:
    """Record of the colocation of a called function: the root of each argument and result."""

    groups: ColocationGroups
    arguments: tuple[int, ...]
    results: tuple[int, ...]


def _by_first_edge(graph: Graph, nodes: frozenset[int]) -> list[int]:
    """Order nodes by the first data edge that touches them, which is when TensorFlow finds that it must look inside."""
    found: dict[int, None] = {}
    for edge in range(len(graph.edge_src) if nodes else 0):
        if graph.is_control(edge):
            continue
        src, dst = graph.edge_src[edge], graph.edge_dst[edge]
        if src in nodes:
            found.setdefault(src)
        elif dst in nodes:
            found.setdefault(dst)
    return list(found)


def _look_inside(groups: ColocationGroups, bodies: CalledBodies, node: int, stack: CallStack) -> _Inside:
    call = groups.graph.attrs[node]["f"]
    assert isinstance(call, FuncRef), "the function of a call is a function attribute"
    if call.name in stack:
        raise _refuse_recursion(groups.graph.names[node], call.name, node, stack)
    body = bodies(call)
    inner = groups.for_body(body.graph)
    colocate_graph(inner, bodies, stack.push(groups.graph.names[node], call.name))
    return _Inside(inner, tuple(inner.root(i) for i in body.arguments), tuple(inner.root(i) for i in body.results))


def _join_neighbours(groups: ColocationGroups, node: int, inside: _Inside) -> None:
    graph = groups.graph
    neighbours_of: dict[int, list[tuple[int, bool]]] = {root: [] for root in (*inside.arguments, *inside.results)}
    for slot, edge in enumerate(graph.data_in_edges(node)):
        neighbours_of[inside.arguments[slot]].append((graph.edge_src[edge], False))
    for edge in graph.out_edges[node]:
        if graph.edge_src_slot[edge] == CONTROL:
            continue
        target = graph.edge_dst[edge]
        takes_resource = graph.in_types[target][graph.edge_dst_slot[edge]] == DataType.DT_RESOURCE
        neighbours_of[inside.results[graph.edge_src_slot[edge]]].append((target, takes_resource))
    for root, neighbours in neighbours_of.items():
        _colocate_neighbours(groups, neighbours)
        if neighbours:
            inner = inside.groups
            groups.limit(neighbours[0][0], inner.requested(root), inner.resource(root), inner.types(root))


def _colocate_neighbours(groups: ColocationGroups, neighbours: Sequence[tuple[int, bool]]) -> None:
    for other, takes_resource in neighbours[1:]:
        if takes_resource:
            groups.join_resource(neighbours[0][0], other, ColocationEdgeKind.CALL)
        else:
            groups.join(ColocationEdge(ColocationEdgeKind.CALL, neighbours[0][0], other))


def _refuse_recursion(name: str, function: str, node: int, stack: CallStack) -> Refused:
    message = (
        f"Recursive function calls are not supported. Node {_format_node(name)} inside the body of "
        f"{_format_function(stack.current)} calls function {_format_function(function)} "
        "which is already present in the call "
        f"stack:\n  {stack}"
    )
    return Refused(Refusal("UNIMPLEMENTED", message, node))


def _format_node(name: str) -> str:
    return "{{node " + name + "}}"


def _format_function(name: str) -> str:
    return "{{function_node " + name + "}}"
