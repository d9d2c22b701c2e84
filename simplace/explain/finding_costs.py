"""What findings cost a step: the copies at their nodes, or those that ops in another place would save."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from simplace.explain.finding import Finding, StepCost
from simplace.graph.builder import CONTROL
from simplace.graph.op_kinds import is_constant
from simplace.partition.copies import copy_columns
from simplace.partition.transfers import Copy, CopyColumns
from simplace.placement.placement import Placement

if TYPE_CHECKING:
    from simplace.costs.cost_model import CostModel

F = TypeVar("F", bound=Finding)


class CopyCosts:
    """Estimate what the copies of a placement cost on the machine that steps are simulated on by default.

    `copies` are those of the step that is looked at, of a session those of its runs.
    """

    def __init__(self, placement: Placement, copies: CopyColumns) -> None:
        self.placement = placement
        self.copies = copies

    def sum_up(self, copies: CopyColumns, numbers: Iterable[int]) -> StepCost:
        """Return what some of the copies cost; control signals are none."""
        chosen = [i for i in numbers if copies.slots[i] != CONTROL]
        sizes = [copies.sizes[i] or 0 for i in chosen]
        seconds = sum(map(self._estimate, map(copies.__getitem__, chosen)))
        error = self.model.assume_reliability("copy").error if seconds else 0.0
        unknown = sum(copies.sizes[i] is None for i in chosen)
        return StepCost(len(chosen), sum(sizes), seconds, error, ("guessed",) if error else (), unknown)

    def of_move(self, homes: Mapping[int, str]) -> StepCost:
        """Return what is saved by having nodes on other devices; less than nothing where that makes more copies.

        A constant goes along with its consumers.
        """
        placed = self.placement.placed
        devices = list(placed.device_of)
        for node, device in {**_take_along(self.placement, homes), **homes}.items():
            devices[node] = device
        before, after = copy_columns(placed), copy_columns(replace(placed, device_of=devices))
        had, left = (self.sum_up(copies, copies.between_devices) for copies in (before, after))
        seconds = had.seconds - left.seconds
        dearer = max(had, left, key=lambda cost: cost.error)
        return replace(dearer, copies=had.copies - left.copies, size=had.size - left.size, seconds=seconds)

    def add_cost(self, finding: F) -> F:
        """Return a finding with the cost of the copies between its nodes and other devices."""
        numbers = [i for i in self._list_at(finding) if self.copies.sources[i] != self.copies.targets[i]]
        return replace(finding, cost=self.sum_up(self.copies, numbers))

    def add_cost_within(self, finding: F) -> F:
        """Return a finding with the cost of the copies of its nodes between the memories of their device."""
        numbers = [i for i in self._list_at(finding) if self.copies.sources[i] == self.copies.targets[i]]
        return replace(finding, cost=self.sum_up(self.copies, numbers))

    def _list_at(self, finding: Finding) -> list[int]:
        """List the numbers of the copies to and from the nodes of a finding."""
        ids = self.placement.graph.ids
        return sorted({number for name in finding.nodes for number in self._at_node.get(ids[name], ())})

    @cached_property
    def _at_node(self) -> Mapping[int, Sequence[int]]:
        found: dict[int, list[int]] = {}
        for number, copy in enumerate(self.copies):
            for node in {copy.producer, *copy.consumers}:
                found.setdefault(node, []).append(number)
        return found

    @cached_property
    def model(self) -> CostModel:
        """Return the cost model."""
        from simplace.costs.chosen_model import cost_model  # a placement without copies needs no costs

        return cost_model("modelled")

    def _estimate(self, copy: Copy) -> float:
        from simplace.costs.estimate import estimate_copy

        return estimate_copy(self.model, self.placement.devices, copy, copy.size or 0)


def _take_along(placement: Placement, homes: Mapping[int, str]) -> dict[int, str]:
    """Return the constants all of whose consumers are moved to one device, with that device."""
    graph = placement.graph
    found = {}
    inputs = {graph.edge_src[edge] for node in homes for edge in graph.in_edges[node]}
    for node in inputs:
        if is_constant(graph.ops[node]):
            outgoing = (edge for edge in graph.out_edges[node] if not graph.is_control(edge))
            targets = {homes.get(graph.edge_dst[edge], "") for edge in outgoing}
            if len(targets) == 1 and "" not in targets:
                found[node] = targets.pop()
    return found
