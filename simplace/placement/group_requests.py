"""Which members of a colocation group requested which device: what explains a group, in one walk over all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from simplace.graph.graph import Graph

Asked = Literal["placed", "resource", "request"]  # assigned before placement, by an op without inputs, by any other


@dataclass(frozen=True, slots=True)
class GroupRequests:
    """Record of the requests of one group.

    `first` is the member that was placed first, -1 for none. Of the members that asked alike for one device, "" for
    none, `lowest` has the one of the lowest id, `earliest` the two that were placed first.
    """

    first: int
    lowest: Mapping[tuple[Asked, str], int]
    earliest: Mapping[tuple[Asked, str], Sequence[int]]


def collect_requests(graph: Graph, members: Sequence[int], rank: Mapping[int, int]) -> GroupRequests:
    """Return the requests of members by id; `rank` has the places of nodes in the order of decisions."""
    found: dict[tuple[Asked, str], list[int]] = {}
    for node in members:
        how: Asked = "placed" if graph.assigned[node] else "request" if graph.in_types[node] else "resource"
        found.setdefault((how, graph.assigned[node] or graph.requested[node]), []).append(node)

    def place(node: int) -> tuple[int, int]:
        return rank.get(node, len(graph)), node

    first = min(members, key=place)
    earliest = {key: sorted(nodes, key=place)[:2] for key, nodes in found.items()}
    return GroupRequests(first if first in rank else -1, {key: nodes[0] for key, nodes in found.items()}, earliest)
