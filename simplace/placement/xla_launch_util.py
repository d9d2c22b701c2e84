"""The resources that a call compiled by XLA is given, and that are on another device than the call: it fails.

Mirrors `GetVariableInfosFromInputs` of tensorflow/compiler/jit/xla_launch_util.cc, which looks at every resource among
the arguments, whatever it is and whether it is used, before anything is compiled.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from simplace.graph.dtypes import DataType
from simplace.graph.graph import Graph
from simplace.graph.op_kinds import CONTROL_FLOW, IDENTITIES, is_arg, is_merge, is_next_iteration
from simplace.placement.placement import Placement
from simplace.placement.xla_compiler import Cluster

_HANDED_ON = CONTROL_FLOW | IDENTITIES | {"IdentityN"}


@dataclass(frozen=True, slots=True)
class ForeignResource:
    """Record of a resource that XLA would read on another device than `home`, that of the call.

    `name` is the handle's, as TensorFlow's error has it; `at` is the line that reads it, `made_at` the one that made
    it, both "" where unknown. `is_variable` is False for a table or another object.
    """

    name: str
    device: str
    home: str
    at: str
    made_at: str
    is_variable: bool


def find_foreign_resources(placement: Placement, cluster: Cluster) -> list[ForeignResource]:
    """List the resources of a compiled call that are on another device, in the order of the arguments."""
    given = _list_own(placement, cluster) if placement.program.kind == "compiled" else _trace_all(placement, cluster)
    return [resource for resource in given if resource.device != cluster.device]


def describe_error(resource: ForeignResource) -> str:
    """Return what TensorFlow says when it comes to the resource."""
    made_at = f" (defined @ {resource.made_at})" if resource.made_at and resource.is_variable else ""
    return (
        f"Trying to access resource {resource.name}{made_at} located in device {resource.device} from device "
        f"{resource.home}"
    )


def _list_own(placement: Placement, cluster: Cluster) -> Iterator[ForeignResource]:
    """Yield the resources of a call from eager code, which are its arguments."""
    for number, resource in sorted(placement.program.resources.items()):
        at = _find_reader(placement, cluster, number)
        yield ForeignResource(
            resource.name, resource.device, cluster.device, at, resource.made_at, resource.is_variable
        )


def _trace_all(placement: Placement, cluster: Cluster) -> Iterator[ForeignResource]:
    graph = placement.graph
    edges = [e for e in graph.data_in_edges(cluster.node) if _is_resource(graph, e)]
    for edge in edges:
        source = _trace_source(graph, edge)
        device = placement.device(source)
        if not device:
            continue
        at = _find_reader(placement, cluster, graph.edge_dst_slot[edge]) or placement.notes(cluster.node).at
        known = (
            placement.program.resources.get(graph.attrs[source].get("index", -1)) if is_arg(graph.ops[source]) else None
        )
        if known is not None:
            yield ForeignResource(known.name, known.device, cluster.device, at, known.made_at, known.is_variable)
        elif not is_arg(graph.ops[source]):
            is_variable = graph.ops[source] == "VarHandleOp"
            name = _read_name(graph, source)
            yield ForeignResource(name, device, cluster.device, at, placement.notes(source).at, is_variable)
        else:
            noted = placement.notes(source)
            yield ForeignResource(
                noted.variable or graph.names[source], device, cluster.device, at, "", bool(noted.variable)
            )


def _is_resource(graph: Graph, edge: int) -> bool:
    return graph.out_types[graph.edge_src[edge]][graph.edge_src_slot[edge]] == DataType.DT_RESOURCE


def _trace_source(graph: Graph, edge: int) -> int:
    """Return the node that makes what comes over an edge, behind those that hand it on."""
    seen: set[int] = set()
    node, slot = graph.edge_src[edge], graph.edge_src_slot[edge]
    while graph.ops[node] in _HANDED_ON and node not in seen:
        seen.add(node)
        into = graph.data_in_edges(node)
        if is_merge(graph.ops[node]):
            into = [e for e in into if not is_next_iteration(graph.ops[graph.edge_src[e]])]
        chosen = into[slot if graph.ops[node] == "IdentityN" else 0]
        node, slot = graph.edge_src[chosen], graph.edge_src_slot[chosen]
    return node


def _read_name(graph: Graph, node: int) -> str:
    shared = graph.attrs[node].get("shared_name", b"")
    return (shared.decode(errors="replace") if isinstance(shared, bytes) else "") or graph.names[node]


def _find_reader(placement: Placement, cluster: Cluster, number: int) -> str:
    """Return the line in the compiled function that takes an argument, "" where it is not known."""
    function = placement.program.graph.library[cluster.function]
    notes = placement.program.notes.get(function.name, {})
    name = function.inputs[number].name if number < len(function.inputs) else ""
    return notes[name].at if name in notes else ""
