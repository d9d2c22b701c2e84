"""What an optimizer keeps for a variable, such as a mean of its gradients, on another device than the variable.

A slot is a variable that the update of one other variable reads, and that is updated itself. It is told only where a
step would copy less with the slot, and what is computed of it, beside the variable.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from operator import or_
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
    bits = {variable: 1 << number for number, variable in enumerate(updates)}
    needed = _find_needed(placement.graph, {node: bits[v] for v, nodes in updates.items() for node in nodes}, gradients)
    away: dict[tuple[str, str], dict[int, int]] = defaultdict(dict)
    for slot, variable in _find_owners(placement.graph, needed, bits).items():
        here, home = placement.device(slot), placement.device(variable)
        if here != home:
            away[here, home][slot] = variable
    for (_, home), of in away.items():
        moved = chain(of, *(updates[slot] for slot in of), _list_needed_alone(needed, bits, of))
        homes = dict.fromkeys(moved, home)
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


def _find_needed(graph: Graph, updates: Mapping[int, int], gradients: set[int]) -> dict[int, int]:
    """Map what is computed between gradients, or reads of variables, and updates to the bits of those that need it.

    `updates` has a bit for each variable. A node is walked again only for bits that are new to it.
    """
    needed: dict[int, int] = {}
    told, waiting = dict(updates), deque(updates)
    while waiting:
        node = waiting.popleft()
        bits = told.pop(node)
        for edge in graph.data_in_edges(node):
            source = graph.edge_src[edge]
            new = bits & ~needed.get(source, 0)
            if new and source not in gradients and graph.ops[source] not in SOURCES:
                needed[source] = needed.get(source, 0) | new
                if graph.ops[source] in READS:
                    continue
                if source not in told:
                    waiting.append(source)
                told[source] = told.get(source, 0) | new
    return {node: bits for node, bits in sorted(needed.items()) if not is_identity(graph.ops[node])}


def _find_owners(graph: Graph, needed: Mapping[int, int], bits: Mapping[int, int]) -> dict[int, int]:
    """Map each slot to the one variable whose update reads it."""
    owners = dict.fromkeys(bits, 0)
    for node, needing in needed.items():
        slot = _find_handle(graph, node) if graph.ops[node] in READS else -1
        if slot in owners:
            owners[slot] |= needing & ~bits[slot]
    variables = {bit: variable for variable, bit in bits.items()}
    alone = {slot: variables[of] for slot, of in owners.items() if of in variables}
    return {slot: variable for slot, variable in alone.items() if variable not in alone}


def _list_needed_alone(needed: Mapping[int, int], bits: Mapping[int, int], of: Mapping[int, int]) -> Iterator[int]:
    """Yield what is computed for slots and their variables, and for no other variable."""
    own = reduce(or_, (bits[variable] for pair in of.items() for variable in pair))
    yield from (node for node, needing in needed.items() if not needing & ~own)
