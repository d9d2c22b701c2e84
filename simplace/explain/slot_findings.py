"""What an optimizer keeps for a variable, such as a mean of its gradients, on another device than the variable.

A slot is a variable that the update of one other variable reads, and that is updated itself. It is told only where a
step would copy less with the slot, and what is computed of it, beside the variable.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from simplace.explain.finding import Finding
from simplace.explain.finding_costs import CopyCosts
from simplace.explain.findings import get_short_device, locate_nodes
from simplace.explain.gradient_findings import SOURCES, find_gradients, is_update
from simplace.graph.graph import Graph
from simplace.graph.op_kinds import READS, is_identity
from simplace.placement.placement import Placement


@dataclass(frozen=True, slots=True)
class SlotsElsewhere(Finding):
    """Slots are on `device`, and the variables that they are kept for on `home`; `nodes` hold the slots."""

    rule: ClassVar[str] = "slots-elsewhere"
    title: ClassVar[str] = "optimizer slots elsewhere"
    slots: tuple[str, ...]
    device: str
    home: str


def slots_elsewhere(costs: CopyCosts) -> Iterator[SlotsElsewhere]:
    """Yield the slots that are on another device than their variables, those of one pair of devices together."""
    placement = costs.placement
    gradients = find_gradients(placement)
    if not gradients:
        return
    updates = _list_updates(placement)
    before = {variable: _walk_back(placement.graph, nodes, gradients) for variable, nodes in updates.items()}
    away: dict[tuple[str, str], dict[int, int]] = defaultdict(dict)
    for slot, variable in _find_owners(placement.graph, before).items():
        here, home = placement.device(slot), placement.device(variable)
        if here != home:
            away[here, home][slot] = variable
    for (_, home), of in away.items():
        homes = dict.fromkeys(_list_moved(placement.graph, before, updates, of), home)
        cost = costs.of_move(homes)
        if min(cost.copies, cost.size, cost.seconds) > 0:
            slots = sorted(of)
            names = tuple(placement.notes(slot).variable or placement.graph.names[slot] for slot in slots)
            where = locate_nodes(placement, slots)
            here, there = get_short_device(placement, slots[0]), get_short_device(placement, of[slots[0]])
            yield SlotsElsewhere(*where, names, here, there, cost=cost)


def _list_updates(placement: Placement) -> dict[int, list[int]]:
    """List the nodes that update each variable, by the op that makes its handle."""
    found = defaultdict[int, list[int]](list)
    for node in sorted(placement.decisions):
        if is_update(placement.graph.ops[node]) and (variable := _find_handle(placement.graph, node)) >= 0:
            found[variable].append(node)
    return found


def _find_handle(graph: Graph, node: int) -> int:
    """Return the op that makes the handle that is a node's first input, -1 for none."""
    source = graph.edge_src[graph.first_inputs[node]] if node in graph.first_inputs else -1
    while source >= 0 and is_identity(graph.ops[source]) and source in graph.first_inputs:
        source = graph.edge_src[graph.first_inputs[source]]
    return source


def _walk_back(graph: Graph, nodes: list[int], gradients: set[int]) -> set[int]:
    """Find what is computed between gradients, or reads of variables, and the updates of a variable."""
    found, waiting = set[int](), list(nodes)
    while waiting:
        for edge in graph.data_in_edges(waiting.pop()):
            node = graph.edge_src[edge]
            if node not in found and node not in gradients and graph.ops[node] not in SOURCES:
                found.add(node)
                waiting += [] if graph.ops[node] in READS else [node]
    return {node for node in found if not is_identity(graph.ops[node])}


def _find_owners(graph: Graph, before: Mapping[int, set[int]]) -> dict[int, int]:
    """Map each slot to the one variable whose update reads it."""
    owners = defaultdict[int, set[int]](set)
    for variable, nodes in before.items():
        for node in nodes:
            slot = _find_handle(graph, node) if graph.ops[node] in READS else -1
            if slot in before and slot != variable:
                owners[slot].add(variable)
    alone = {slot: of.pop() for slot, of in owners.items() if len(of) == 1}
    return {slot: variable for slot, variable in alone.items() if variable not in alone}


def _list_moved(
    graph: Graph, before: Mapping[int, set[int]], updates: Mapping[int, list[int]], of: Mapping[int, int]
) -> Iterator[int]:
    """Yield slots, their updates, and what is computed for these and for the variables alone."""
    own = [variable for pair in of.items() for variable in pair]
    times = Counter(node for each in own for node in before[each])
    others = {node for variable, nodes in before.items() if variable not in own for node in nodes}
    yield from of
    yield from (node for slot in of for node in updates[slot])
    yield from (node for node in times if node not in others)
