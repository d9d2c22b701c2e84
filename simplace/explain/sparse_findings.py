"""Gradients of lookups that replicas gather row by row (IndexedSlices) where a sum of whole variables is smaller."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from simplace.costs.collectives import count_sent_bytes
from simplace.costs.cost_model import CollectiveCall, KernelCost
from simplace.explain.finding import Finding, StepCost
from simplace.explain.finding_costs import CopyCosts
from simplace.explain.findings import locate_nodes
from simplace.graph.algorithm import reverse_reachable
from simplace.graph.op_kinds import READS, is_arg
from simplace.partition.collective_members import Collective
from simplace.placement.placement import Placement

_SCATTERS = ("ResourceScatter", "ResourceSparseApply")


@dataclass(frozen=True, slots=True)
class SparseGather(Finding):
    """Replicas gather the rows of a variable's gradients, and would send less if they summed up the whole of it.

    `gathered` is what each of the `participants` puts in, indices with it, `dense` the variable's size, both in bytes.
    The cost is what each replica sends more than it had to, without copies.
    """

    rule: ClassVar[str] = "sparse-gather"
    title: ClassVar[str] = "rows gathered"
    variable: str
    participants: int
    gathered: int
    dense: int


def sparse_gathers(costs: CopyCosts, collectives: Sequence[Collective]) -> Iterator[SparseGather]:
    """Yield the gathers of rows that send more than an all-reduce of the variable, each once for all replicas."""
    placement = costs.placement
    member_of = {
        node: i
        for i, one in enumerate(collectives)
        if one.kind == "all-gather" and one.size and not one.copies
        for node in one.members
    }
    told: set[int] = set()
    for node in sorted(placement.decisions) if member_of else ():
        if placement.graph.ops[node].startswith(_SCATTERS):
            used = _find_gathers(placement, node, member_of)
            variable = _find_variable(placement, node)
            if variable and used and not told & used:
                told |= used
                yield from _compare_sizes(costs, *variable, [collectives[i] for i in sorted(used)])


def _find_gathers(placement: Placement, node: int, member_of: Mapping[int, int]) -> set[int]:
    """Return the gathers that what is scattered is computed from."""
    graph = placement.graph

    def list_producers(at: int) -> list[int]:
        if at in member_of or graph.ops[at] in READS:
            return []
        return [graph.edge_src[edge] for edge in graph.data_in_edges(at)]

    return {member_of[one] for one in reverse_reachable([node], list_producers) if one in member_of}


def _find_variable(placement: Placement, node: int) -> tuple[str, int] | None:
    """Return the name and the bytes of the variable that a node updates, None where they are not known."""
    graph = placement.graph
    handle = graph.edge_src[graph.first_inputs[node]]
    index = graph.attrs[handle].get("index", -1) if is_arg(graph.ops[handle]) else -1
    resource = placement.program.resources.get(index)
    return (resource.name, resource.size) if resource is not None and resource.size else None


def _compare_sizes(
    costs: CopyCosts, variable: str, dense: int, gathers: Sequence[Collective]
) -> Iterator[SparseGather]:
    first, gathered = gathers[0], sum(one.size or 0 for one in gathers)
    count = first.participants
    more = count_sent_bytes("all_gather", gathered, count) - count_sent_bytes("all_reduce", dense, count)
    if more > 0:
        gather, reduce = (_estimate(costs, *one, first) for one in (("all_gather", gathered), ("all_reduce", dense)))
        where = locate_nodes(costs.placement, [node for one in gathers for node in one.members])
        cost = StepCost(0, round(more), max(0.0, gather.device_s - reduce.device_s), gather.off, (gather.source,))
        yield SparseGather(*where, variable, count, gathered, dense, cost=cost)


def _estimate(costs: CopyCosts, op: str, size: int, like: Collective) -> KernelCost:
    """Return the cost of a collective between the devices of another one."""
    ends = [costs.placement.devices.by_name[name] for name in like.devices]
    is_remote = like.participants > len(ends) or not all(ends[0].spec.same_address_space(end.spec) for end in ends)
    call = CollectiveCall(op, size, like.participants, ends[0].type, is_remote)
    return costs.model.collective(call)
