"""The constraints of a refused placement that cannot hold together, and the colocation edges between them.

TensorFlow's message lists the whole colocation group; the conflict is seldom between more than two members.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import combinations

from simplace.devices.device_name import DeviceConflict, DeviceName
from simplace.explain.colocation_path import shortest_path, walk_colocation_edges
from simplace.graph.dtypes import REF_OFFSET, DataType
from simplace.placement.colocation_graph import ColocationEdge
from simplace.placement.placement import Placement

_ANY = DeviceName()
_MOST = 24  # distinct constraints compared; a group has a handful


@dataclass(frozen=True, slots=True)
class Constraint:
    """Record of a node's constraint: a device ("" for none; `fixed` where it was assigned before), kernels' types."""

    node: int
    device: str
    fixed: bool
    types: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Conflict:
    """Record of constraints that no device meets, with the colocation edges from the first node to the others."""

    constraints: tuple[Constraint, ...]
    path: tuple[ColocationEdge, ...] = ()


def find_conflict(placement: Placement) -> Conflict | None:
    """Return the smallest conflict behind a refusal; None where nothing is refused or no constraint is at fault."""
    refusal = placement.refusal
    if refusal is None or not refusal.ends:
        return None
    nodes = (node for node, _, _ in walk_colocation_edges(partial(_joins_at, placement), refusal.ends[0]))
    constraints = list(_collect_distinct(placement, nodes))[:_MOST]
    for size in (1, 2, 3):
        for chosen in combinations(constraints, size):
            if not _is_satisfiable(placement, chosen):
                return Conflict(chosen, _connect_nodes(placement, [constraint.node for constraint in chosen]))
    return None


def _collect_distinct(placement: Placement, nodes: Iterable[int]) -> Iterator[Constraint]:
    """Yield each distinct constraint once, that of the nearest node."""
    every = set(placement.groups.support.device_types)
    seen: set[tuple[str, tuple[str, ...]]] = set()
    for node in nodes:
        constraint = _record_constraint(placement, node)
        key = (constraint.device, constraint.types)
        if key not in seen and (constraint.device or set(constraint.types) != every):
            seen.add(key)
            yield constraint


def _record_constraint(placement: Placement, node: int) -> Constraint:
    graph = placement.graph
    types = tuple(kind for kind, _ in placement.groups.own_types[node])
    if graph.assigned[node]:
        return Constraint(node, graph.assigned[node], True, types)
    made = graph.out_types[node]
    is_resource = not graph.in_types[node] and len(made) == 1
    is_resource = is_resource and (made[0] == DataType.DT_RESOURCE or made[0] > REF_OFFSET)
    insists = not placement.soft_placement or is_resource
    return Constraint(node, graph.requested[node] if insists else "", False, types)


def _is_satisfiable(placement: Placement, constraints: tuple[Constraint, ...]) -> bool:
    """Return whether some device meets all the constraints."""
    spec = _ANY
    types = set(constraints[0].types)
    for constraint in constraints:
        own = DeviceName.parse(constraint.device)
        if own is None:
            return False
        try:
            spec = spec.merged(own, "strict")
        except DeviceConflict:
            return False
        types &= set(constraint.types)
    return any(device.type in types for device in placement.devices.matching(spec))


def _joins_at(placement: Placement, node: int) -> list[ColocationEdge]:
    """Return the colocation edges of a node, with the one that failed."""
    failed = placement.groups.failed
    colocation_edges = placement.joins_at.get(node, [])
    return (
        [*colocation_edges, failed]
        if failed is not None and node in (failed.first, failed.second)
        else colocation_edges
    )


def _connect_nodes(placement: Placement, nodes: list[int]) -> tuple[ColocationEdge, ...]:
    """Return the colocation edges from the first node to each of the others, each edge once."""
    chain: dict[ColocationEdge, None] = {}
    for goal in nodes[1:]:
        chain.update(dict.fromkeys(shortest_path(partial(_joins_at, placement), nodes[0], goal)))
    return tuple(chain)
