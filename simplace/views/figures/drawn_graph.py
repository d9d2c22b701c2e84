"""Reduce a placed graph to the nodes that a figure draws, and the data edges between them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from simplace.explain.conflict import find_conflict
from simplace.graph.op_kinds import is_constant, is_next_iteration
from simplace.placement.placement import Placement
from simplace.program.known_names import Path, get_known_name, tidy_path
from simplace.views.figures.acyclic_groups import Ends
from simplace.views.figures.folding import LEFT_OUT, fold_nodes

_FOLD_FROM = 10  # nodes: a smaller graph is drawn as it is


@dataclass(frozen=True)
class DrawnGraph:
    """Record of the nodes that are drawn: `home` maps each to the one that it is drawn with, or to `LEFT_OUT`.

    `keepers` are those drawn by themselves, by id.
    """

    placement: Placement
    home: dict[int, int]
    keepers: list[int]

    @classmethod
    def of(cls, placement: Placement, fold_from: int = _FOLD_FROM) -> DrawnGraph:
        """Return what is drawn of a placement; where more than `fold_from` nodes are, some with their neighbours."""
        drawn = _list_drawn(placement)
        home = fold_nodes(placement, drawn) if len(drawn) > fold_from else {node: node for node in drawn}
        return cls(placement, home, [node for node in drawn if home[node] == node])

    @cached_property
    def paths(self) -> dict[int, Path]:
        """Return the names of the keepers, by scope, as the user knows them."""
        return {node: tidy_path(get_known_name(self.placement.placed, node)) for node in self.keepers}

    @cached_property
    def edges(self) -> list[Ends]:
        """List the data edges between keepers, each pair once, without the back edges of loops."""
        graph, home = self.placement.graph, self.home
        found: dict[Ends, None] = {}
        for source, slot, target in zip(graph.edge_src, graph.edge_src_slot, graph.edge_dst, strict=True):
            ends = home.get(source, LEFT_OUT), home.get(target, LEFT_OUT)
            if slot < 0 or LEFT_OUT in ends or ends[0] == ends[1] or is_next_iteration(graph.ops[source]):
                continue
            if ends[0] == source or not is_constant(graph.ops[source]):
                found[ends] = None
        return list(found)

    @cached_property
    def local_edges(self) -> list[Ends]:
        """List the edges whose ends have one device."""
        device = self.placement.device
        return [(one, other) for one, other in self.edges if device(one) == device(other)]

    @cached_property
    def before(self) -> dict[int, list[int]]:
        """Map each keeper to those that it reads."""
        return _collect(self.keepers, ((target, source) for source, target in self.edges))

    @cached_property
    def after(self) -> dict[int, list[int]]:
        """Map each keeper to those that read it."""
        return _collect(self.keepers, self.edges)


def _collect(nodes: list[int], pairs: Iterable[Ends]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {node: [] for node in nodes}
    for one, other in pairs:
        found[one].append(other)
    return found


def _list_drawn(placement: Placement) -> list[int]:
    """Return the placed nodes, with those over which a refused placement failed."""
    refusal = placement.refusal
    found = find_conflict(placement)
    colocated = () if found is None else [node for join in found.path for node in (join.first, join.second)]
    failed = () if refusal is None else (refusal.node, *refusal.ends, *colocated)
    return sorted({*placement.decisions, *(node for node in failed if 1 < node < len(placement.graph))})
