"""Findings about a placement, as records: requests not granted, CPU ops between GPUs, idle devices.

`show` prints each in a line (`explain.finding_lines`), the doctor with advice (`simplace.doctor.advice`), which has
further findings about Python and the environment. Devices are written as in the program where they are requests, and
in short ("GPU:0") where they are devices of the run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

from simplace.devices.device_name import DeviceName
from simplace.devices.device_ranges import fold_names
from simplace.devices.device_set import Device, DeviceSet
from simplace.explain.finding import Finding, Level
from simplace.graph import dtypes
from simplace.graph.dtypes import DataType
from simplace.graph.graph import Graph
from simplace.graph.op_kinds import ARGS, CALLS_OF_PYTHON, CONSTANTS, DATAFLOW_ONLY, IDENTITIES, is_write
from simplace.partition.transfers import MemoryTypes
from simplace.placement.placement import Placement, is_request_granted

if TYPE_CHECKING:
    from simplace.explain.reasons import Reason


_INTEGERS = frozenset({DataType.DT_INT32, DataType.DT_INT64, DataType.DT_BOOL})


@dataclass(frozen=True, slots=True)
class RequestNotGranted(Finding):
    """A request was not granted: the nodes are on `got`, and `because` says why of the first one.

    `ops` counts the op types of the nodes.
    """

    title: ClassVar[str] = "request not granted"
    request: str
    got: str
    ops: str = field(compare=False)
    because: str = field(compare=False)


@dataclass(frozen=True, slots=True)
class NoSuchDevice(RequestNotGranted):
    """A request names a device that does not exist, and soft placement took another without a warning.

    `got` is "" for a scope around eager code, whose ops are placed one by one.
    """

    rule: ClassVar[str] = "no-such-device"
    there: str


@dataclass(frozen=True, slots=True)
class NoKernel(RequestNotGranted):
    """A request could not be granted, since an op has no kernel there; `instead` is a data type that has one, or ""."""

    rule: ClassVar[str] = "no-kernel"
    op: str
    instead: str


@dataclass(frozen=True, slots=True)
class RequestOverruled(RequestNotGranted):
    """A request lost to that of a colocated node or resource: which one distinguishes two findings.

    `assigns` tells that the nodes assign to variables.
    """

    rule: ClassVar[str] = "request-overruled"
    because: str
    assigns: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class DetourOverCpu(Finding):
    """Ops between GPU ops run on the CPU; `because` is the reason in a sentence.

    `cause` is what holds them there: a kernel that is missing, what they are colocated with, such as a variable, or
    that they call Python. `of_integers` tells that they compute integers and booleans alone.
    """

    rule: ClassVar[str] = "detour-over-cpu"
    title: ClassVar[str] = "CPU between GPUs"
    ops: str
    device: str
    because: str
    cause: Literal["kernel", "colocation", "python"]
    of_integers: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class HostMemory(Finding):
    """Ops run on a GPU while their results live in host memory."""

    rule: ClassVar[str] = "host-memory"
    level: ClassVar[Level] = "note"
    title: ClassVar[str] = "host memory"
    is_harmless: ClassVar[bool] = True
    ops: str


@dataclass(frozen=True, slots=True)
class IdleGpu(Finding):
    """No op runs on GPUs: `requests` counts the ops that requested one and are elsewhere.

    Where the first GPU is idle since ops that it has kernels for request the CPU, they are `nodes`, counted in `ops`.
    """

    rule: ClassVar[str] = "idle-gpu"
    level: ClassVar[Level] = "note"
    title: ClassVar[str] = "idle device"
    devices: tuple[str, ...]
    requests: int
    ops: str = field(default="", compare=False)


def count_ops(placement: Placement, nodes: Sequence[int]) -> str:
    """Return the op types of nodes with their counts, the three most frequent."""
    graph = placement.graph
    if len(nodes) == 1:
        return f"{graph.names[nodes[0]]} ({graph.ops[nodes[0]]})"
    ops = Counter(graph.ops[node] for node in nodes)
    kinds = ", ".join(f"{count} {op}" if count > 1 else op for op, count in ops.most_common(3))
    return f"{len(nodes):,} ops ({kinds}{', …' if len(ops) > 3 else ''})"


def ungranted_requests(placement: Placement) -> list[RequestNotGranted]:
    """Return the requests that were not granted, those of one line that got one device for one reason together.

    A strategy requests its replicas' devices: only one that does not exist is the program's matter.
    """
    graph = placement.graph
    missed = {
        node for node in _list_ungranted(placement) if not graph.assigned[node] and not graph.origins[node].made_by
    }
    found: dict[tuple[object, ...], list[int]] = {}
    for node in sorted(missed):
        if placement.decisions[node].follows in missed:
            continue  # a constant that follows such a consumer adds nothing
        kind = _classify_ungranted(placement, node, _find_node_reason(placement, node))
        found.setdefault((placement.device(node), placement.notes(node).at, kind), []).append(node)
    recorded = ((_record_ungranted(placement, nodes), nodes[0]) for nodes in found.values())
    return [
        finding
        for finding, first in recorded
        if isinstance(finding, NoSuchDevice) or not placement.notes(first).is_by_library
    ]


def detours_over_cpu(placement: Placement) -> list[DetourOverCpu]:
    """Return the ops on a CPU without a request for it whose inputs and outputs are on GPUs of the CPU's process.

    Another process's CPU is a parameter server's: what is sent there and back is meant to be. A single value that is
    given, such as the default of a lookup, is none of a GPU's work.
    """
    graph, devices = placement.graph, placement.node_devices
    gpu = [device for device in placement.devices if device.type == "GPU"]
    beside = {
        cpu.name: {one.name for one in gpu if one.spec.same_address_space(cpu.spec)}
        for cpu in placement.devices
        if cpu.type == "CPU"
    }
    found: dict[tuple[str, str], list[int]] = {}
    for node in placement.decisions if gpu else ():
        own = beside.get(devices[node])
        if not own or graph.ops[node] in DATAFLOW_ONLY or asks_for_type(graph, node):
            continue
        before = {devices[graph.edge_src[e]] for e in graph.data_in_edges(node) if not _gives_scalar(placement, e)}
        after = {devices[graph.edge_dst[e]] for e in graph.out_edges[node] if not graph.is_control(e)}
        if not own.isdisjoint(before) and not own.isdisjoint(after):
            found.setdefault((placement.notes(node).at, graph.ops[node]), []).append(node)
    return [_record_detour(placement, sorted(nodes)) for nodes in found.values()]


def _gives_scalar(placement: Placement, edge: int) -> bool:
    """Return whether an edge carries, maybe handed on, a single value that an argument or a constant is."""
    graph = placement.graph
    while graph.ops[graph.edge_src[edge]] in IDENTITIES:
        edge = next(iter(graph.data_in_edges(graph.edge_src[edge])))
    producer, slot = graph.edge_src[edge], graph.edge_src_slot[edge]
    shapes = placement.notes(producer).shapes
    return graph.ops[producer] in ARGS | CONSTANTS and slot < len(shapes) and shapes[slot] == ()


def has_gpu_kernel(placement: Placement, node: int) -> bool:
    """Return whether a node's op has a kernel for GPUs, with its attributes."""
    return any(kind == "GPU" for kind, _ in placement.groups.own_types[node])


def asks_for_type(graph: Graph, node: int) -> bool:
    """Return whether a node requests a type of device; tf.py_function requests its own process alone."""
    spec = DeviceName.parse(graph.requested[node])
    return spec is not None and spec.type is not None


def asks_for_cpu(graph: Graph, node: int) -> bool:
    """Return whether a node requests a CPU."""
    spec = DeviceName.parse(graph.requested[node])
    return spec is not None and spec.type == "CPU"


def host_memory(placement: Placement, types: Iterable[DataType] = ()) -> list[HostMemory]:
    """Return, as one finding, the ops on GPUs whose results (of these types, () for any) are kept in host memory."""
    graph, memory, wanted = placement.graph, MemoryTypes(placement.placed), set(types)
    gpu = {d.name for d in placement.devices if d.type == "GPU"}
    devices = placement.node_devices
    nodes = [
        node
        for node, is_special in enumerate(memory.special)
        if is_special
        and devices[node] in gpu
        and graph.ops[node] not in DATAFLOW_ONLY
        and any(
            host and graph.out_types[node][slot] not in (DataType.DT_RESOURCE, DataType.DT_STRING)
            for slot, host in enumerate(memory.of(node)[1])
        )
        and (not wanted or not wanted.isdisjoint(graph.out_types[node]))
    ]
    return [HostMemory(*locate_nodes(placement, nodes), count_ops(placement, nodes))] if nodes else []


def idle_gpus(placements: Sequence[Placement], devices: DeviceSet, busy: Collection[str] = ()) -> Iterator[IdleGpu]:
    """Yield the GPUs on which none of the placements that TensorFlow accepts has an op, and that are not `busy`.

    Those that nothing requests are one finding.
    """
    accepted = [placement for placement in placements if placement.refusal is None]
    if not accepted:
        return
    used = {decision.device for placement in accepted for decision in placement.decisions.values()}.union(busy)
    gpus = [device for device in devices if device.type == "GPU"]
    alone = []
    for device in gpus:
        if device.name in used:
            continue
        asked = sum(_count_requests(one, device) for one in accepted)
        held = next(_list_kept_on_cpu(accepted), None) if device is gpus[0] and not asked else None
        if held is not None:
            placement, nodes = held
            yield IdleGpu(*locate_nodes(placement, nodes), (device.short,), 0, count_ops(placement, nodes))
        elif asked:
            yield IdleGpu("", "", (), (device.short,), asked)
        else:
            alone.append(device.short)
    if alone:
        yield IdleGpu("", "", (), tuple(alone), 0)


def _list_kept_on_cpu(placements: Iterable[Placement]) -> Iterator[tuple[Placement, list[int]]]:
    """Yield the ops of each placement that the program requests on the CPU although a GPU has kernels for them."""
    for placement in placements:
        graph, types = placement.graph, placement.groups.own_types
        nodes = [
            node
            for node in sorted(placement.decisions)
            if asks_for_cpu(graph, node)
            and placement.devices.by_name[placement.device(node)].type == "CPU"
            and graph.ops[node] not in DATAFLOW_ONLY | CONSTANTS
            and any(kind == "GPU" for kind, _ in types[node])
            and not placement.notes(node).is_by_library
        ]
        if nodes:
            yield placement, nodes


def _count_requests(placement: Placement, device: Device) -> int:
    """Count the ops that request a device by its number; without a task they mean the one that the function runs on."""
    home = (placement.default or device).spec
    counts = Counter(request for request in placement.graph.requested if request)
    parsed = ((DeviceName.parse(request), count) for request, count in counts.items())
    return sum(
        count
        for spec, count in parsed
        if spec is not None and spec.id is not None and spec.filled_from(home).matches(device.spec)
    )


def _list_ungranted(placement: Placement) -> list[int]:
    """Return the placed nodes whose own request does not allow the device that they are on."""
    rows = list(zip(placement.graph.requested, placement.node_devices, strict=True))
    one_of = {row: node for node, row in enumerate(rows) if row[0] and row[1]}
    refused = {row for row, node in one_of.items() if not is_request_granted(placement, node)}
    return [node for node, row in enumerate(rows) if row in refused] if refused else []


# A graph without findings needs no reasons: the functions that state one import what they need.


def _find_node_reason(placement: Placement, node: int) -> Reason:
    from simplace.explain.reasons import find_reason

    return find_reason(placement, node)


def _classify_ungranted(placement: Placement, node: int, reason: Reason) -> type[RequestNotGranted]:
    """Return the kind of finding: without a kernel of its own there, it does not matter what overrules a request."""
    from simplace.explain.reasons import SoftFallback

    if isinstance(reason, SoftFallback) and not reason.exists:
        return NoSuchDevice
    lacks_kernel = isinstance(reason, SoftFallback) and reason.kernels_missing_at >= 0
    return NoKernel if lacks_kernel or _lacks_kernel(placement, node) else RequestOverruled


def _lacks_kernel(placement: Placement, node: int) -> bool:
    """Return whether a node has no kernel on the type of device that it requests."""
    wanted = DeviceName.parse(placement.graph.requested[node])
    kinds = {kind for kind, _ in placement.groups.own_types[node]}
    return wanted is not None and wanted.type is not None and wanted.type not in kinds


def _record_ungranted(placement: Placement, nodes: list[int]) -> RequestNotGranted:
    from simplace.explain import reasons as why
    from simplace.explain.sentences import short_request, state_reason

    first, requested = nodes[0], placement.graph.requested
    reason = why.find_reason(placement, first)
    where, got, ops = locate_nodes(placement, nodes), get_short_device(placement, first), count_ops(placement, nodes)
    kind = _classify_ungranted(placement, first, reason)
    own = dict.fromkeys(short_request(requested[node]) for node in nodes)
    if kind is RequestOverruled:
        assigns, because = all(is_write(placement.graph.ops[node]) for node in nodes), state_reason(placement, reason)
        return RequestOverruled(*where, _join_requests(own), got, ops, str(because), assigns)
    if not isinstance(reason, why.SoftFallback) or (reason.exists and reason.kernels_missing_at < 0):
        device = placement.device(first)  # something overrules the request as well
        reason = why.SoftFallback(first, device, requested[first], first, True, first, False)
    because = state_reason(placement, reason)
    request = _join_requests(own) if len(own) > 1 else short_request(reason.request)
    if kind is NoSuchDevice:
        return NoSuchDevice(*where, request, got, ops, str(because), str(placement.devices))
    lacking = reason.kernels_missing_at
    instead = _format_nearest(placement, lacking, DeviceName.parse(reason.request))
    return NoKernel(*where, request, got, ops, str(because), placement.graph.ops[lacking], instead)


def _join_requests(requests: Iterable[str]) -> str:
    """Join requests with commas, of a run of device numbers the first and the last."""
    return ", ".join(fold_names(requests))


def _format_nearest(placement: Placement, node: int, wanted: DeviceName | None) -> str:
    from simplace.explain.reasons import kernel_facts

    near = {kind: nearest for kind, nearest in kernel_facts(placement, node).lacking if nearest is not None}
    nearest = near.get(wanted.type) if wanted is not None and wanted.type is not None else None
    return f"{nearest.attr}={dtypes.format_dtype(nearest.instead)}" if nearest is not None else ""


def _record_detour(placement: Placement, nodes: list[int]) -> DetourOverCpu:
    from simplace.explain.reasons import Colocated
    from simplace.explain.sentences import state_reason

    first, reason = nodes[0], _find_node_reason(placement, nodes[0])
    has_kernel = has_gpu_kernel(placement, first)
    is_colocated = isinstance(reason, Colocated) and reason.leader != first and reason.how != "kernel" and has_kernel
    cause: Literal["kernel", "colocation", "python"] = "colocation" if is_colocated else "kernel"
    if placement.graph.ops[first] in CALLS_OF_PYTHON:
        cause = "python"
    ops, device = count_ops(placement, nodes), get_short_device(placement, first)
    graph, because = placement.graph, str(state_reason(placement, reason))
    types = {kind for node in nodes for kind in (*graph.in_types[node], *graph.out_types[node])}
    return DetourOverCpu(*locate_nodes(placement, nodes), ops, device, because, cause, types <= _INTEGERS)


def locate_nodes(placement: Placement, nodes: Sequence[int]) -> tuple[str, str, tuple[str, ...]]:
    """Return the line of the first of some nodes, their program and their names."""
    names = tuple(placement.graph.names[node] for node in nodes)
    return placement.notes(nodes[0]).at, placement.program.title, names


def get_short_device(placement: Placement, node: int) -> str:
    """Return the device of a node in short."""
    return placement.devices.by_name[placement.device(node)].short
