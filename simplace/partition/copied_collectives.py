"""Find the collectives that are made of copies: a tensor of each device is joined, and the result goes back to all.

HierarchicalCopyAllReduce and ReductionToOneDevice (tensorflow/python/distribute/cross_device_ops.py) reduce so, with
AddN, and gather the values and indices of IndexedSlices, with ConcatV2. What a program itself writes in this form
counts as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import compress, count
from typing import Literal

from simplace.graph.builder import CONTROL
from simplace.graph.graph import Graph
from simplace.graph.op_kinds import IDENTITIES
from simplace.partition.transfers import CopyColumns
from simplace.program.placed_graph import PlacedGraph

_SUM, _CONCAT = "AddN", "ConcatV2"
_HANDS_ON = IDENTITIES | {"RealDiv", "Mul"}  # a mean is a sum that is divided before it goes back

Output = tuple[int, int]  # a node and its output slot
_Inputs = dict[int, list[int]]  # edges by the node that they lead to


@dataclass(frozen=True, slots=True)
class Joined:
    """Record of a join at `node` of the outputs `leaves`, one of each device, whose result goes to all `devices`."""

    kind: Literal["all-reduce", "all-gather"]
    node: int
    leaves: tuple[Output, ...]
    devices: tuple[str, ...]
    copies: tuple[int, ...]


def find_joined(placed: PlacedGraph, copies: CopyColumns) -> list[Joined]:
    """Find such joins by node; `copies` are those of the graph, in its own node ids."""
    graph, devices = placed.graph, placed.device_of
    most = len(placed.devices)
    joining = {
        node
        for node, op in enumerate(graph.ops)
        if op in (_SUM, _CONCAT)
        and 1 < len(graph.in_types[node]) - (op == _CONCAT) <= most  # one tensor of each device
    }
    inputs = _list_inputs(graph, joining)
    joins = {
        node: into for node, into in inputs.items() if any(devices[graph.edge_src[e]] != devices[node] for e in into)
    }
    if not joins:
        return []
    found = [one for node in sorted(joins) if (one := _examine_join(placed, node, joins)) is not None]
    within = {node for _, one in found for node in one if node in joins}
    roots = [(one, nodes) for one, nodes in found if one.node not in within]
    return _with_copies(graph, roots, copies)


def _examine_join(placed: PlacedGraph, node: int, joins: _Inputs) -> tuple[Joined, set[int]] | None:
    """Return a join and the nodes below and after it that hand tensors on, None where not all get the result."""
    graph, devices = placed.graph, placed.device_of
    below = _list_leaves(placed, node, joins)
    if below is None:
        return None
    leaves, inner = below
    ends = [devices[leaf] for leaf, _ in leaves]
    after = _follow(graph, node)
    reached = {devices[graph.edge_dst[e]] for one in (node, *after) for e in _data_out_edges(graph, one)}
    if not reached.issuperset(ends):
        return None
    order = [device.name for device in placed.devices if device.name in ends]
    kind: Literal["all-reduce", "all-gather"] = "all-reduce" if graph.ops[node] == _SUM else "all-gather"
    return Joined(kind, node, tuple(leaves), tuple(order), ()), inner | after


def _list_leaves(placed: PlacedGraph, node: int, joins: _Inputs) -> tuple[list[Output], set[int]] | None:
    """Return what a join joins, in order, and the sums below it, as sums of sums count as one.

    None where two are of one device: so no walk is longer than there are devices, however sums share sums.
    """
    graph, devices = placed.graph, placed.device_of
    leaves: dict[str, Output] = {}
    inner: set[int] = set()
    work = [*reversed(joins[node])]
    while work:
        edge = work.pop()
        source, target = graph.edge_src[edge], graph.edge_dst[edge]
        if graph.ops[target] == _SUM and graph.ops[source] == _SUM and source in joins:
            inner.add(source)
            work += reversed(joins[source])
        elif devices[source] in leaves:
            return None
        else:
            leaves[devices[source]] = source, graph.edge_src_slot[edge]
    return list(leaves.values()), inner


def _list_inputs(graph: Graph, joining: set[int]) -> _Inputs:
    """List by node the edges of the tensors that nodes join: the last input of a concatenation is its axis.

    All edges are looked at once, which is quicker than to sort those of a large graph by node.
    """
    inputs: _Inputs = {}
    for edge in compress(count(), map(joining.__contains__, graph.edge_dst)):
        if graph.edge_dst_slot[edge] != CONTROL:
            inputs.setdefault(graph.edge_dst[edge], []).append(edge)
    for node, edges in inputs.items():
        edges.sort(key=graph.edge_dst_slot.__getitem__)
        if graph.ops[node] == _CONCAT:
            edges.pop()
    return inputs


def _follow(graph: Graph, node: int) -> set[int]:
    """Return the nodes that hand the result of a node on."""
    found: set[int] = set()
    work = [node]
    while work:
        at = work.pop()
        for edge in _data_out_edges(graph, at):
            target = graph.edge_dst[edge]
            if graph.ops[target] in _HANDS_ON and graph.edge_dst_slot[edge] == 0 and target not in found:
                found.add(target)
                work.append(target)
    return found


def _data_out_edges(graph: Graph, node: int) -> list[int]:
    return [edge for edge in graph.out_edges[node] if graph.edge_src_slot[edge] != CONTROL]


def _with_copies(graph: Graph, roots: list[tuple[Joined, set[int]]], copies: CopyColumns) -> list[Joined]:
    """Add to each join the numbers of the copies that bring its parts, and of those that take the result back."""
    senders = {node for one, nodes in roots for node in (one.node, *nodes, *(leaf for leaf, _ in one.leaves))}
    parts: dict[int, list[int]] = {node: [] for node in senders}
    for i in copies.between_devices if roots else ():
        if copies.producers[i] in parts:
            parts[copies.producers[i]].append(i)
    found = []
    for one, nodes in roots:
        joining = {one.node} | {node for node in nodes if graph.ops[node] == _SUM}
        bringing = {leaf for leaf, _ in one.leaves} | joining - {one.node}
        taking = {one.node} | nodes - joining
        numbers = {i for node in bringing for i in parts[node] if joining & set(copies[i].consumers)}
        numbers |= {i for node in taking for i in parts[node] if copies.targets[i] in one.devices}
        found.append(Joined(one.kind, one.node, one.leaves, one.devices, tuple(sorted(numbers))))
    return found
