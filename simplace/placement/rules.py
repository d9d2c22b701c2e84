"""The rules that choose a device for one node, in TensorFlow's order.

Mirrors Placer::Run (tensorflow/core/common_runtime/placer.cc). A rule answers with a device and the node it follows,
or None to let the next rule speak.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from simplace.graph.dtypes import REF_OFFSET
from simplace.graph.graph import Graph
from simplace.graph.op_kinds import IDENTITIES, METADATA, is_identity, is_metadata
from simplace.placement.candidates import Candidates

FOLLOWING_OPS = METADATA | IDENTITIES  # only for these and for generators has any rule but the last an answer


class Rule(Enum):
    """Name the rule that decided, in the order in which TensorFlow tries them."""

    ASSIGNED = "assigned before placement"
    METADATA = "metadata follows its input"
    IDENTITY = "identity follows its input"
    GENERATOR = "generator follows its consumers"
    FIRST_CANDIDATE = "first candidate"


@dataclass(slots=True)
class View:
    """Record of what a rule sees: the graph and the devices decided so far (full names, "" for not yet)."""

    graph: Graph
    chosen: list[str]
    identity_rule: bool  # since TensorFlow 2.17

    def follows(self, source: int, candidates: Candidates) -> str:
        """Return the device of `source` if it has one among the candidates, else ""."""
        device = self.chosen[source]
        return device if device and any(c.name == device for c in candidates.devices) else ""


Answer = tuple[Rule, str, int] | None  # rule, full device name, the node it follows or -1
RuleFunction = Callable[[View, int, Candidates], Answer]


def place_metadata(view: View, node: int, candidates: Candidates) -> Answer:
    """Put Shape, Size and Rank where their first in-edge comes from: they read no data."""
    if not is_metadata(view.graph.ops[node]) or not view.graph.in_edges[node]:
        return None
    source = view.graph.edge_src[view.graph.in_edges[node][0]]
    device = view.follows(source, candidates)
    return (Rule.METADATA, device, source) if device else None


def place_identity(view: View, node: int, candidates: Candidates) -> Answer:
    """Put an Identity with one input and one consumer, both requesting the same device, where its input is."""
    graph = view.graph
    if not is_identity(graph.ops[node]) or not view.identity_rule or graph.requested[node]:
        return None
    if len(graph.in_edges[node]) != 1 or len(graph.out_edges[node]) != 1:
        return None
    source, target = graph.edge_src[graph.in_edges[node][0]], graph.edge_dst[graph.out_edges[node][0]]
    if graph.requested[source] != graph.requested[target]:
        return None
    device = view.follows(source, candidates)
    return (Rule.IDENTITY, device, source) if device else None


def place_generator(view: View, node: int, candidates: Candidates) -> Answer:
    """Put a node without data inputs where all its consumers are, if they are on one device."""
    graph = view.graph
    if not is_generator(graph, node):
        return None
    targets = [graph.edge_dst[edge] for edge in graph.out_edges[node]]
    if not targets or len({view.chosen[target] for target in targets}) != 1:
        return None
    device = view.follows(targets[0], candidates)
    return (Rule.GENERATOR, device, targets[0]) if device else None


def first_candidate(view: View, node: int, candidates: Candidates) -> Answer:
    """Take the best device of the node's group."""
    return Rule.FIRST_CANDIDATE, candidates.devices[0].name, -1


ALL_RULES: tuple[RuleFunction, ...] = (place_metadata, place_identity, place_generator, first_candidate)


def is_generator(graph: Graph, node: int) -> bool:
    """Return whether a node waits for the second pass: no data input and one output that is no reference."""
    if graph.in_types[node]:
        return False
    out = graph.out_types[node]
    return len(out) == 1 and out[0] <= REF_OFFSET
