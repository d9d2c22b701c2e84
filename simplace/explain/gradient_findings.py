"""Gradients and updates that compute elsewhere than the ops and variables that they belong to.

A gradient op belongs where the forward ops compute that read the same tensors as it does: only `tf.gradients` asks for
that (its ops are colocated with the forward ops), a tape leaves it to the scope around `tape.gradient`. An op between
a gradient and an assignment belongs to the variable's device. Both are told, or one of them, only where a step would
copy less with them there.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from simplace.explain.finding import Finding, StepCost
from simplace.explain.finding_costs import CopyCosts
from simplace.explain.findings import get_short_device
from simplace.graph.dtypes import DataType, is_ref
from simplace.graph.graph import Graph
from simplace.graph.op_kinds import (
    ARGS,
    CONSTANTS,
    METADATA,
    PLACEHOLDERS,
    READS,
    VARIABLE_HANDLE,
    VARIABLES,
)
from simplace.placement.placement import Placement

# tensorflow/python/eager/backprop.py and python/ops/gradients_util.py name the scope of what they add.
_GRADIENT = re.compile(r"(^|/)(gradient_tape|gradients(_\d+)?)/")
_UPDATE = re.compile(r"Assign(Add|Sub)?(VariableOp)?$|(Resource)?(Sparse)?Apply")
SOURCES = ARGS | CONSTANTS | METADATA | PLACEHOLDERS | VARIABLES | {VARIABLE_HANDLE}
_SUMS = frozenset({"AddN"})
_COUNTS = frozenset({DataType.DT_INT32, DataType.DT_INT64, DataType.DT_BOOL})  # shapes and conditions


@dataclass(frozen=True, slots=True)
class OpsElsewhere(Finding):
    """Ops run on `device`, and what they belong to is on the devices `homes` (in short); the cost is what that adds.

    `source` is the line that made most of them.
    """

    device: str
    homes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GradientsElsewhere(OpsElsewhere):
    """Gradient ops run elsewhere than the forward ops; `updates` counts the nodes between them and assignments."""

    rule: ClassVar[str] = "gradients-elsewhere"
    title: ClassVar[str] = "gradients elsewhere"
    updates: int


@dataclass(frozen=True, slots=True)
class UpdatesElsewhere(OpsElsewhere):
    """What is assigned to variables, or added to them, is computed elsewhere than where they are."""

    rule: ClassVar[str] = "updates-elsewhere"
    title: ClassVar[str] = "updates elsewhere"


def gradients_elsewhere(costs: CopyCosts) -> Iterator[GradientsElsewhere | UpdatesElsewhere]:
    """Yield the gradients, or else the updates, that are elsewhere, by the device that they run on."""
    placement = costs.placement
    gradients = find_gradients(placement)
    if not gradients:
        return
    updates = find_updates(placement, gradients)
    homes = _find_homes(placement, gradients)
    for device in dict.fromkeys(map(placement.device, [*homes, *updates])):
        away, late = ({node: of[node] for node in of if placement.device(node) == device} for of in (homes, updates))
        # An update also reads what all updates share, such as the count of steps: it may cost more copies there.
        for gradient_homes, update_homes in ((away, late), (away, {}), ({}, late)):
            cost = costs.of_move({**update_homes, **gradient_homes})
            if min(cost.copies, cost.size) >= 0 and cost.seconds > 0:
                yield _describe_move(placement, gradient_homes, update_homes, cost)
                break


def is_gradient(graph: Graph, node: int) -> bool:
    """Return whether a node is in a scope of those that differentiation adds its ops to."""
    return _GRADIENT.search(graph.names[node]) is not None


def get_gradient_scope(name: str) -> str | None:
    """Return the scope of the forward op, or its name, in the name of a gradient op; None for other ops.

    >>> get_gradient_scope("gradient_tape/dense/MatMul/MatMul_1"), get_gradient_scope("gradients/mm_grad/MatMul")
    ('dense/MatMul', 'mm')
    >>> get_gradient_scope("gradient_tape/Reshape"), get_gradient_scope("dense/MatMul")
    ('', None)
    """
    found = _GRADIENT.search(name)
    return None if found is None else name[found.end() :].rpartition("/")[0].removesuffix("_grad")


def is_update(op: str) -> bool:
    """Return whether an op assigns to a variable, or applies a gradient to it.

    >>> is_update("AssignSubVariableOp"), is_update("ResourceApplyAdam"), is_update("ReadVariableOp")
    (True, True, False)
    """
    return _UPDATE.match(op) is not None


def _describe_move(
    placement: Placement, gradients: Mapping[int, str], updates: Mapping[int, str], cost: StepCost
) -> GradientsElsewhere | UpdatesElsewhere:
    """Return the finding of gradients and updates that belong to other devices than the one that they run on."""
    if not gradients:
        return UpdatesElsewhere(*_describe_ops(placement, updates), cost=cost)
    return GradientsElsewhere(*_describe_ops(placement, gradients), len(updates), cost=cost)


def _describe_ops(
    placement: Placement, homes: Mapping[int, str]
) -> tuple[str, str, tuple[str, ...], str, tuple[str, ...]]:
    """Return the line that made most of some nodes, their program, names and device, and the devices they belong to."""
    nodes = sorted(homes)
    lines = Counter(line for line in (placement.notes(node).at for node in nodes) if line)
    names = tuple(placement.graph.names[node] for node in nodes)
    wanted = tuple(device.short for device in placement.devices if device.name in homes.values())
    return (
        max(lines, key=lines.__getitem__, default=""),
        placement.program.title,
        names,
        get_short_device(placement, nodes[0]),
        wanted,
    )


def find_gradients(placement: Placement) -> set[int]:
    """Return the ops that differentiation added: by their scope; a tape sums gradients up outside of it."""
    graph = placement.graph
    found = {node for node in placement.decisions if is_gradient(graph, node)}
    sums = (node for node in sorted(placement.decisions) if found and graph.ops[node] in _SUMS)
    for node in sums:
        if all(graph.edge_src[edge] in found for edge in graph.data_in_edges(node)):
            found.add(node)
    return found


def _find_homes(placement: Placement, gradients: Collection[int]) -> dict[int, str]:
    """Return the gradient ops without a request that are elsewhere than what they belong to, and where that is.

    One that reads nothing of the forward pass belongs to the gradients that it is computed from.
    """
    graph, homes = placement.graph, dict[int, str]()
    for node in sorted(gradients):
        forward, others = Counter[str](), Counter[str]()
        for edge in graph.data_in_edges(node):
            producer, slot = graph.edge_src[edge], graph.edge_src_slot[edge]
            if producer in gradients:
                others.update([homes[producer]] if producer in homes else [])
            elif graph.ops[producer] not in SOURCES and graph.out_types[producer][slot] not in _COUNTS:
                forward.update(_list_readers(placement, producer, slot, gradients) or [placement.device(producer)])
        votes, own = forward or others, placement.device(node)
        if votes:
            homes[node] = own if own in votes else max(votes, key=lambda device: (votes[device], device))
    return {node: home for node, home in homes.items() if _is_free(placement, node) and home != placement.device(node)}


def _list_readers(placement: Placement, producer: int, slot: int, gradients: Collection[int]) -> list[str]:
    """List the devices of the forward ops that read an output."""
    graph = placement.graph
    readers = (graph.edge_dst[e] for e in graph.out_edges[producer] if graph.edge_src_slot[e] == slot)
    return [placement.device(node) for node in readers if node not in gradients]


def find_updates(placement: Placement, gradients: Collection[int]) -> dict[int, str]:
    """Return the nodes without a request whose results go only into variables of one other device, and that device."""
    graph = placement.graph
    homes = {node: placement.device(node) for node in placement.decisions if is_update(graph.ops[node])}
    assigning, waiting = set(homes), list(homes)
    reached, split = Counter[int](), set[int]()
    while waiting:
        node = waiting.pop()
        for edge in graph.data_in_edges(node):
            producer = graph.edge_src[edge]
            if producer in gradients or producer in assigning or _is_given(graph, producer):
                continue
            if homes.setdefault(producer, homes[node]) != homes[node]:
                split.add(producer)
            reached[producer] += 1
            if reached[producer] == _count_readers(graph, producer) and producer not in split:
                waiting.append(producer)
    found = (node for node in reached if node not in split and reached[node] == _count_readers(graph, node))
    return {node: homes[node] for node in found if _is_free(placement, node) and homes[node] != placement.device(node)}


def _is_given(graph: Graph, node: int) -> bool:
    """Return whether a node gives what is not computed: an argument, or the value of a variable, as of TensorFlow 1."""
    from_variable = (
        is_ref(graph.out_types[graph.edge_src[e]][graph.edge_src_slot[e]]) for e in graph.data_in_edges(node)
    )
    return graph.ops[node] in SOURCES | READS or any(from_variable)


def _count_readers(graph: Graph, node: int) -> int:
    return sum(not graph.is_control(edge) for edge in graph.out_edges[node])


def _is_free(placement: Placement, node: int) -> bool:
    """Return whether nothing requests the node's device, and it is not a shape, which follows a tensor."""
    graph = placement.graph
    return not (graph.requested[node] or graph.assigned[node] or graph.ops[node] in METADATA)
