"""Why a placement is refused, at its smallest: the two or three nodes whose wishes clash, and what ties them.

TensorFlow's message lists the whole colocation group; the clash in it is seldom more than two members.
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
_MOST = 24  # distinct wishes compared; a group has a handful


@dataclass(frozen=True, slots=True)
class Want:
    """Say what one node insists on: a device ("" for none; `fixed` where it was assigned before), kernels' types."""

    node: int
    device: str
    fixed: bool
    types: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Conflict:
    """Hold wishes that no device meets together, and the joins that lead from the first node to each further one."""

    wants: tuple[Want, ...]
    path: tuple[ColocationEdge, ...] = ()


def find_conflict(placement: Placement) -> Conflict | None:
    """Find the smallest clash behind a refusal; None where nothing is refused or no wish of a node is at fault."""
    refusal = placement.refusal
    if refusal is None or not refusal.ends:
        return None
    nodes = (node for node, _, _ in walk_colocation_edges(partial(_joins_at, placement), refusal.ends[0]))
    wants = list(_collect_distinct(placement, nodes))[:_MOST]
    for size in (1, 2, 3):
        for chosen in combinations(wants, size):
            if not _is_satisfiable(placement, chosen):
                return Conflict(chosen, _connect_nodes(placement, [want.node for want in chosen]))
    return None


def _collect_distinct(placement: Placement, nodes: Iterable[int]) -> Iterator[Want]:
    """Give each different wish once, that of the nearest node."""
    every = set(placement.groups.support.device_types)
    seen: set[tuple[str, tuple[str, ...]]] = set()
    for node in nodes:
        want = _record_constraint(placement, node)
        key = (want.device, want.types)
        if key not in seen and (want.device or set(want.types) != every):
            seen.add(key)
            yield want


def _record_constraint(placement: Placement, node: int) -> Want:
    graph = placement.graph
    types = tuple(kind for kind, _ in placement.groups.own_types[node])
    if graph.assigned[node]:
        return Want(node, graph.assigned[node], True, types)
    made = graph.out_types[node]
    is_resource = not graph.in_types[node] and len(made) == 1
    is_resource = is_resource and (made[0] == DataType.DT_RESOURCE or made[0] > REF_OFFSET)
    insists = not placement.soft_placement or is_resource
    return Want(node, graph.requested[node] if insists else "", False, types)


def _is_satisfiable(placement: Placement, wants: tuple[Want, ...]) -> bool:
    """Say whether some device meets all the wishes."""
    spec = _ANY
    types = set(wants[0].types)
    for want in wants:
        own = DeviceName.parse(want.device)
        if own is None:
            return False
        try:
            spec = spec.merged(own, "strict")
        except DeviceConflict:
            return False
        types &= set(want.types)
    return any(device.type in types for device in placement.devices.matching(spec))


def _joins_at(placement: Placement, node: int) -> list[ColocationEdge]:
    """List the joins of a node, with the one that failed."""
    failed = placement.groups.failed
    colocation_edges = placement.joins_at.get(node, [])
    return (
        [*colocation_edges, failed]
        if failed is not None and node in (failed.first, failed.second)
        else colocation_edges
    )


def _connect_nodes(placement: Placement, nodes: list[int]) -> tuple[ColocationEdge, ...]:
    """Chain the joins from the first node to each of the others, each join once."""
    chain: dict[ColocationEdge, None] = {}
    for goal in nodes[1:]:
        chain.update(dict.fromkeys(shortest_path(partial(_joins_at, placement), nodes[0], goal)))
    return tuple(chain)
