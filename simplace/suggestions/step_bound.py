"""A time below which no placement of a step's ops comes, on the machine as it is."""

from __future__ import annotations

from collections.abc import Sequence

from simplace.analysis.lower_bound import order_nodes
from simplace.analysis.schedule import Schedule
from simplace.costs.cost_model import KernelCost
from simplace.costs.estimate import estimate_costs
from simplace.errors import SimplaceError
from simplace.partition.graph_partition import partition_graph
from simplace.result import Placed
from simplace.suggestions.estimated_step import place_pinned
from simplace.suggestions.evidence import write_device


def find_bound(placed: Placed, schedule: Schedule) -> int:
    """Return nanoseconds that a step takes at least wherever its ops are placed, with the best kernel for each.

    It is the largest of three: the critical path without any copy, all work on threads shared by the cores, and
    all work of ops that are quickest on a GPU shared by all devices. Ops that did not run count for nothing.
    """
    costs = _list_costs(placed, schedule)
    threads = max(1, schedule.threads.cores)
    quickest = [min((_quickest(cost, threads) for cost in each), default=0.0) for each in costs]
    host = sum(min((cost.host_s + cost.later_s for cost in each), default=0.0) for each in costs) / threads
    lanes = threads + sum(device.type == "GPU" for device in placed.placement.devices)
    shared = sum(min((cost.host_s / threads + cost.device_s for cost in each), default=0.0) for each in costs) / lanes
    return round(1e9 * max(_time_critical_path(schedule, quickest), host, shared))


def _list_costs(placed: Placed, schedule: Schedule) -> list[list[KernelCost]]:
    """List, for each op of the partitioned graph that ran, what it costs where it is, on the CPU and on a GPU."""
    graph = schedule.estimated.graph
    ran = {span.node for span in schedule.trace.spans if span.kind != "dead"}
    first = {device.type: device for device in reversed(list(placed.placement.devices))}
    elsewhere = [_cost_everywhere(placed, schedule, write_device(device)) for device in first.values()]
    costs: list[list[KernelCost]] = []
    for i, node in enumerate(graph.nodes):
        is_op = i in ran and node.role == "op" and i not in graph.collective_of
        own = [schedule.estimated.kernels[i]] if is_op else []
        costs.append(own + [there[node.name] for there in elsewhere if is_op and node.name in there])
    return costs


def _cost_everywhere(placed: Placed, schedule: Schedule, device: str) -> dict[str, KernelCost]:
    """Return what each op costs, by name, with all ops on one device as far as they can be; {} where none can."""
    old = placed.placement
    names = [old.graph.names[node] for node in old.decisions]
    try:
        placement = place_pinned(old, dict.fromkeys(names, device), soft_placement=True)
        graph = partition_graph(placement.runnable())
    except SimplaceError:
        return {}
    estimated = estimate_costs(graph, schedule.estimated.model, batch=schedule.execution.options.batch)
    return {node.name: cost for node, cost in zip(graph.nodes, estimated.kernels, strict=True) if node.role == "op"}


def _quickest(cost: KernelCost, threads: int) -> float:
    return cost.device_s if cost.device_s else cost.host_s / max(1, min(cost.shards, threads))


def _time_critical_path(schedule: Schedule, seconds: Sequence[float]) -> float:
    """Return the length of the critical path of the ops, 0 for graphs with loops."""
    graph = schedule.estimated.graph
    if schedule.flow.frames:
        return 0.0
    ends = [0.0] * len(graph)
    senders = {receive: send for send, receive in graph.receiver.items()}
    for node in order_nodes(schedule.estimated):
        if node >= len(graph):  # the end of a collective, whose members are nodes
            continue
        before = [ends[edge.src] for edge in graph.ins[node]]
        if node in senders:
            before.append(ends[senders[node]])
        ends[node] = max(before, default=0.0) + seconds[node]
    return max(ends, default=0.0)
