"""The critical-path lower bound of a step: no number of threads makes it shorter."""

from __future__ import annotations

from simplace.costs.estimate import EstimatedGraph
from simplace.executor.control_flow import ControlFlow
from simplace.graph.algorithm import order_by_inputs


def compute_lower_bound(estimated: EstimatedGraph, flow: ControlFlow, shards: int, *, has_streams: bool) -> int | None:
    """Return the critical-path lower bound in nanoseconds, None for graphs with control flow.

    A kernel counts with its time over `shards` threads at most. With streams, a GPU kernel holds up what copies its
    result, and the end of the step, while ops on the same GPU wait for its launch alone, and its kernels run one after
    another; without, a GPU's kernel runs on threads too. Executor overheads do not count.
    """
    if flow.frames or flow.branches:
        return None
    graph = estimated.graph
    launched = [0] * len(graph)  # the earliest end on the host
    finished = [0] * len(graph)  # the earliest end of the kernel
    sender = {receive: send for send, receive in graph.receiver.items()}
    ready = [0] * len(graph.members)  # when the last member of a collective has come
    on_stream: dict[str, int] = {}  # by device, the sum of its kernels
    for node in order_nodes(estimated):
        if node >= len(graph):
            _end_collective(estimated, node - len(graph), ready, launched, finished)
            continue
        before = [edge.src for edge in graph.ins[node]]
        start = max((launched[one] for one in before), default=0)
        cost = estimated.kernels[node]
        if node in sender:
            start = max(start, finished[sender[node]] + round(1e9 * estimated.copy_seconds[graph.nodes[node].copy]))
        if node in graph.collective_of:  # its streams wait for what its GPU has enqueued, so for its inputs
            number, arrived = graph.collective_of[node], start + round(1e9 * cost.host_s) * has_streams
            ready[number] = max([ready[number], arrived, *(finished[one] for one in before)])
            continue
        is_gpu = cost.device_s > 0
        host = round(1e9 * (cost.device_s if is_gpu and not has_streams else cost.host_s))
        splits = not (is_gpu and has_streams)
        if not splits:
            device = graph.nodes[node].device
            on_stream[device] = on_stream.get(device, 0) + round(1e9 * cost.device_s)
        begins = start + host // (max(1, min(cost.shards, shards)) if splits else 1)
        launched[node] = begins + round(1e9 * cost.later_s) * has_streams
        done = max(launched[node], begins + round(1e9 * cost.device_s) * has_streams)
        is_send = graph.nodes[node].role == "send"
        finished[node] = max([done, *(finished[one] for one in before if is_send)])
    return max([*finished, *on_stream.values(), 0])


def _end_collective(
    estimated: EstimatedGraph, number: int, ready: list[int], launched: list[int], finished: list[int]
) -> None:
    """Set the end of all members of a collective."""
    members = estimated.graph.members[number]
    end = ready[number] + max((round(1e9 * estimated.kernels[node].device_s) for node in members), default=0)
    for node in members:
        launched[node] = finished[node] = end


def order_nodes(estimated: EstimatedGraph) -> list[int]:
    """Order the nodes by their inputs; the end of collective i counts as a node, of number `len(graph) + i`."""
    graph = estimated.graph
    waiting = [len(into) for into in graph.ins] + [len(members) for members in graph.members]
    for receive in graph.receiver.values():
        waiting[receive] += 1

    def successors(node: int) -> list[int]:
        if node >= len(graph):
            return [edge.dst for member in graph.members[node - len(graph)] for edge in graph.outs[member]]
        if node in graph.collective_of:
            return [len(graph) + graph.collective_of[node]]
        return [edge.dst for edge in graph.outs[node]] + ([graph.receiver[node]] if node in graph.receiver else [])

    return order_by_inputs(waiting, successors)
