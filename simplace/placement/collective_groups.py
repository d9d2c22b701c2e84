"""The collectives of a placed graph whose members never come together.

A member looks for the others by its group key and its instance key, and waits until `group_size` of them have come
(tensorflow/core/common_runtime/collective_param_resolver_local.cc, base_collective_executor.cc). Either there are too
few, or one starts when another has ended, as automatic control dependencies order the stateful ops of a function. Only
keys that are constants are judged.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from simplace.graph.graph import Graph
from simplace.graph.node_def import TensorInfo
from simplace.graph.op_kinds import COLLECTIVE_KEY_INPUTS, is_constant, is_identity, is_next_iteration
from simplace.placement.placement import Placement

_ATTRIBUTES = frozenset({"CollectiveReduce", "CollectiveGather", "CollectiveBcastSend", "CollectiveBcastRecv"})
_NCCL = "NcclAllReduce"  # named by a string, and counted by num_devices


@dataclass(frozen=True, slots=True)
class IncompleteGroup:
    """Record of members of one collective, by node id, that never come together: `size` of them would be needed.

    Where there are as many, one waits for another one's end.
    """

    members: tuple[int, ...]
    size: int


def find_incomplete_groups(placement: Placement) -> Iterator[IncompleteGroup]:
    """Yield the collectives of which members are missing, in the order of their first nodes."""
    if len({device.task for device in placement.devices}) > 1:
        return  # the others may run in other tasks
    graph = placement.graph
    found: dict[tuple[object, ...], list[int]] = {}
    for node in placement.decisions:
        key = _read_key(graph, node)
        if key is not None:
            found.setdefault(key, []).append(node)
    for (size, *_), members in found.items():
        if isinstance(size, int) and (len(members) < size or _are_ordered(graph, members)):
            yield IncompleteGroup(tuple(sorted(members)), size)


def _are_ordered(graph: Graph, members: list[int]) -> bool:
    """Return whether a member needs what another one has to end for, in one round of a loop."""
    others, seen, waiting = set(members), set[int](), list(members)
    while waiting:
        for edge in graph.out_edges[waiting.pop()]:
            after = graph.edge_dst[edge]
            if after in others:
                return True
            if after not in seen and not is_next_iteration(graph.ops[after]):
                seen.add(after)
                waiting.append(after)
    return False


def _read_key(graph: Graph, node: int) -> tuple[object, ...] | None:
    """Return (group size, kind of keys, group key, instance key) of a member; None where one is not known."""
    op, attrs = graph.ops[node], graph.attrs[node]
    if op == _NCCL:
        return (attrs["num_devices"], op, attrs["shared_name"], 0)
    if op in _ATTRIBUTES:
        return (attrs["group_size"], "attributes", attrs["group_key"], attrs["instance_key"])
    if op not in COLLECTIVE_KEY_INPUTS:
        return None
    into = graph.data_in_edges(node)
    size, group, instance = (_read_constant(graph, graph.edge_src[into[slot]]) for slot in COLLECTIVE_KEY_INPUTS[op])
    return None if size is None or group is None or instance is None else (size, "inputs", group, instance)


def _read_constant(graph: Graph, node: int) -> int | None:
    """Return the value of a constant, also behind an Identity; None for anything else."""
    seen: set[int] = set()
    while is_identity(graph.ops[node]) and node not in seen:
        seen.add(node)
        node = graph.edge_src[graph.data_in_edges(node)[0]]
    value = graph.attrs[node].get("value") if is_constant(graph.ops[node]) else None
    return value.value if isinstance(value, TensorInfo) else None
