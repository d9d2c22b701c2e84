"""What a user would not expect of a placement: requests not granted, detours over the CPU, idle devices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from simplace.graph.dtypes import DataType
from simplace.partition.transfers import MemoryTypes
from simplace.placement import reasons as why
from simplace.placement.placement import Placement

_DATAFLOW_ONLY = frozenset(
    "_Arg _DeviceArg _Retval _DeviceRetval NoOp Const Identity IdentityN Switch Merge Enter Exit NextIteration "
    "LoopCond _SwitchN PartitionedCall StatefulPartitionedCall VarHandleOp Placeholder".split()
)


@dataclass(frozen=True, slots=True)
class Surprise:
    """Name nodes that share one surprise: `source` is the user's line ("" unknown), `reason` that of the first node.

    `kind` is "not granted", "cpu between gpus", "host memory" or "idle device" (then `nodes` is empty and `device`
    says which).
    """

    kind: str
    nodes: tuple[int, ...]
    device: str
    source: str = ""
    reason: why.Reason | None = None


def find_surprises(placement: Placement) -> list[Surprise]:
    """List the surprises of a placement, the most telling kind first, then by first node."""
    return [found for look in _LOOKS for found in look(placement)]


def _not_granted(placement: Placement) -> list[Surprise]:
    graph = placement.graph
    missed = {
        node
        for node in placement.decisions
        if graph.requested[node] and not graph.assigned[node] and not graph.origins[node].made_by
        if not why.granted(placement, node)
    }
    found: dict[tuple[object, ...], list[int]] = {}
    for node in sorted(missed):
        if placement.decisions[node].follows in missed:
            continue  # a constant that goes with a missed consumer says nothing new
        reason = why.reason(placement, node)
        key = (graph.requested[node], placement.device(node), placement.notes(node).at, type(reason))
        found.setdefault(key, []).append(node)
    return [_surprise("not granted", placement, nodes) for nodes in found.values()]


def _cpu_between_gpus(placement: Placement) -> list[Surprise]:
    graph = placement.graph
    cpu = {d.name for d in placement.devices if d.type == "CPU"}
    gpu = {d.name for d in placement.devices if d.type == "GPU"}
    if not gpu:
        return []
    found: dict[tuple[str, str], list[int]] = {}
    for node in placement.decisions:
        if placement.device(node) not in cpu or graph.ops[node] in _DATAFLOW_ONLY or graph.requested[node]:
            continue
        before = {placement.device(graph.edge_src[e]) for e in graph.in_edges[node] if not graph.is_control(e)}
        after = {placement.device(graph.edge_dst[e]) for e in graph.out_edges[node] if not graph.is_control(e)}
        if before & gpu and after & gpu:
            found.setdefault((placement.notes(node).at, graph.ops[node]), []).append(node)
    return [_surprise("cpu between gpus", placement, sorted(nodes)) for nodes in found.values()]


def _host_memory(placement: Placement) -> list[Surprise]:
    graph, memory = placement.graph, MemoryTypes(placement)
    gpu = {d.name for d in placement.devices if d.type == "GPU"}
    nodes = [
        node
        for node in placement.decisions
        if placement.device(node) in gpu
        and graph.ops[node] not in _DATAFLOW_ONLY
        and any(
            host and graph.out_types[node][slot] not in (DataType.DT_RESOURCE, DataType.DT_STRING)
            for slot, host in enumerate(memory.of(node)[1])
        )
    ]
    return [_surprise("host memory", placement, sorted(nodes))] if nodes else []


def _idle_devices(placement: Placement) -> list[Surprise]:
    if placement.refusal is not None:
        return []
    used = {decision.device for decision in placement.decisions.values()}
    return [Surprise("idle device", (), d.name) for d in placement.devices if d.type == "GPU" and d.name not in used]


def _surprise(kind: str, placement: Placement, nodes: list[int]) -> Surprise:
    first = nodes[0]
    at, reason = placement.notes(first).at, why.reason(placement, first)
    return Surprise(kind, tuple(nodes), placement.device(first), at, reason)


_LOOKS: tuple[Callable[[Placement], list[Surprise]], ...] = (
    _not_granted, _cpu_between_gpus, _idle_devices, _host_memory,
)  # fmt: skip
