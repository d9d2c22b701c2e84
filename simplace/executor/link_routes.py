"""Find which shared links each copy and collective of a step passes, and how long it would take alone.

A copy between a GPU and the host passes each shared link of PCIe that lists the GPU. One between GPUs of a process
passes none where they have NVLink, or lie in one physical GPU; else those of both, but for those that join both where
peers reach each other without the host. One between tasks passes the links of the network that list one of the two, and
of PCIe those of the GPUs whose memory it reads or writes: its bytes go straight on. Each direction is a link too.

The members of a collective are a ring, in which those that reach each other without a link follow each other; each
copies to the next one as above. What a ring hands from task to task leaves and enters each of them by one GPU, which is
taken to change. A broadcast or a reduction to one member is such a ring without its last hop: nothing comes in to its
first member, and nothing leaves the last. In an all-to-all each member copies as much to each other one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

from simplace.costs.collectives import count_sent_bytes
from simplace.costs.cost_model import CollectiveCall, CostModel, PeerWay
from simplace.costs.estimate import EstimatedGraph, estimate_copy
from simplace.devices.device_link import DeviceLink
from simplace.devices.device_set import Device, DeviceSet, shorten_task
from simplace.executor.trace import PassedLink
from simplace.partition.graph_partition import PartitionedGraph
from simplace.partition.transfers import Copy

_PROBE = 10**9  # bytes: a copy of so many tells the bandwidth of a link that has none of its own


@dataclass(frozen=True, slots=True)
class Route:
    """Record of a copy alone, or of a collective: nanoseconds before its first byte and those of its bytes.

    `rate` in bytes/s is what it moves, of a collective what each member sends. `loads` has for 2 i how many times these
    bytes leave by the shared link i, for 2 i + 1 how many times they come in by it.
    """

    latency: int
    moving: int
    rate: float
    loads: Mapping[int, float]


@dataclass(frozen=True, slots=True)
class Routes:
    """Record of the links that several GPUs or tasks share, with the routes of copies and collectives.

    `of_member` has by node the route of its collective, and which of its ways the member passes itself.
    """

    links: tuple[PassedLink, ...]
    of_copy: tuple[Route, ...]
    of_member: Mapping[int, tuple[Route, tuple[int, ...]]]


def find_routes(estimated: EstimatedGraph) -> Routes:
    """Return the routes of the copies and collectives of a step."""
    devices, model, graph = estimated.graph.placed.devices, estimated.model, estimated.graph
    links = tuple(_measure_link(link, devices, model) for link in devices.links)
    copies = tuple(_find_copy_route(estimated, number) for number in range(len(graph.copies)))
    of_member = {}
    for number in estimated.collective_calls:
        route = _find_collective_route(estimated, number)
        for node in graph.members[number]:
            device = devices.by_name[graph.nodes[node].device]
            of_member[node] = route, tuple(way for way in route.loads if _is_listed(devices.links[way // 2], device))
    return Routes(links, copies, of_member)


def _measure_link(link: DeviceLink, devices: DeviceSet, model: CostModel) -> PassedLink:
    sharers = map(shorten_task, link.tasks) if link.tasks else (devices.by_name[name].short for name in link.gpus)
    bandwidth = float(link.bandwidth) or _probe_bandwidth(model, "remote" if link.tasks else "GPU")
    return PassedLink(link.name, bandwidth, tuple(sharers))


def _probe_bandwidth(model: CostModel, target: str) -> float:
    seconds = model.copy(_PROBE, "CPU", target) - model.copy(0, "CPU", target)
    return _PROBE / seconds if seconds > 0 else inf


def _find_copy_route(estimated: EstimatedGraph, number: int) -> Route:
    devices, copy, size = estimated.graph.placed.devices, estimated.graph.copies[number], estimated.copy_bytes[number]
    loads = dict.fromkeys(_list_ways(devices, copy, estimated.model.peer_way), 1.0) if size else {}
    latency_s = estimate_copy(estimated.model, devices, copy, 0) if loads else 0.0
    return _make_route(estimated.copy_seconds[number], latency_s, size, loads)


def _make_route(alone_s: float, latency_s: float, size: float, loads: Mapping[int, float]) -> Route:
    whole = round(1e9 * alone_s)
    latency = min(whole, round(1e9 * latency_s))
    moving = whole - latency
    return Route(latency, moving, 1e9 * size / moving if moving else inf, loads)


def _list_ways(devices: DeviceSet, copy: Copy, peer_way: PeerWay) -> Iterator[int]:
    source, target = devices.by_name[copy.source], devices.by_name[copy.target]
    is_remote = not source.spec.same_address_space(target.spec)
    ends = (_name_gpu(source, copy.source_memory), _name_gpu(target, copy.target_memory))
    if all(ends) and not is_remote and peer_way == "nvlink":
        return
    for i, link in enumerate(devices.links):
        if link.tasks:
            leaves, enters = (end.task in link.tasks and is_remote for end in (source, target))
            is_inside = leaves and enters
        else:
            leaves, enters = (end in link.gpus for end in ends)
            is_one = target.name in devices.cards.get(source.name, ())
            is_inside = leaves and enters and not is_remote and (is_one or peer_way == "pcie")
        if leaves and not is_inside:
            yield 2 * i
        if enters and not is_inside:
            yield 2 * i + 1


def _name_gpu(device: Device, memory: str) -> str:
    """Return the GPU whose memory one end of a copy is in, "" where it is in the host's."""
    return device.name if device.type != "CPU" and memory == "device" else ""


# collectives


def _find_collective_route(estimated: EstimatedGraph, number: int) -> Route:
    graph, model, call = estimated.graph, estimated.model, estimated.collective_calls[number]
    devices = graph.placed.devices
    alone_s = max(estimated.kernels[node].device_s for node in graph.members[number])
    sent = count_sent_bytes(call.op, call.size, call.participants)
    ring = _list_ring(graph, number)
    loads = {
        2 * i + comes_in: load
        for i, link in enumerate(devices.links) if sent
        for comes_in, load in enumerate(_count_passing(link, devices, ring, call, model.peer_way)) if load
    }  # fmt: skip
    latency_s = model.collective(replace(call, size=0)).device_s if loads else 0.0
    return _make_route(alone_s, latency_s, sent, loads)


def _list_ring(graph: PartitionedGraph, number: int) -> tuple[str, ...]:
    """Return the devices of a collective, of a broadcast from its root on, of a reduction to its root.

    Those of a task, and those that a link lists, then follow each other.
    """
    collective, devices = graph.collectives[number], graph.placed.devices
    if collective.kind not in ("broadcast", "reduce"):
        return collective.devices
    roots = [graph.nodes[node].device for node in graph.members[number] if _is_root(graph.nodes[node].op)]
    at = collective.devices.index(roots[0]) if roots else 0
    place = {name: i for i, name in enumerate((*collective.devices[at:], *collective.devices[:at]))}
    groups = [[name for name in place if _is_listed(link, devices.by_name[name])] for link in devices.links]
    tasks = dict.fromkeys(devices.by_name[name].task for name in place)
    groups += [[name for name in place if devices.by_name[name].task == task] for task in tasks]
    groups.sort(key=len, reverse=True)
    ring = sorted(place, key=lambda name: [place[group[0]] for group in groups if name in group] + [place[name]])
    return tuple(ring if collective.kind == "broadcast" else reversed(ring))


def _is_root(op: str) -> bool:
    return op.endswith("ReduceRecv") or "BcastSend" in op or "BroadcastSend" in op


def _count_passing(
    link: DeviceLink, devices: DeviceSet, ring: tuple[str, ...], call: CollectiveCall, way: PeerWay
) -> tuple[float, float]:
    """Return how many times as much as one member sends leaves by a link, and comes in by it.

    Participants in other programs are taken to be in tasks that the link does not list.
    """
    behind = [name for name in ring if _is_listed(link, devices.by_name[name])]
    if link.tasks and not call.is_remote:
        return 0.0, 0.0
    groups = dict.fromkeys(_list_joined(link, devices, name, ring, behind, way) for name in behind)
    leaves, comes_in, is_chain = 0.0, 0.0, call.op == "broadcast"
    for group in groups:
        others, own = call.participants - len(group), len([name for name in group if name in behind])
        if not others:
            continue
        # In an all-to-all each has something for each other one; in a ring each takes its turn to hand on.
        load = own * others / (call.participants - 1) if call.op == "alltoall" else own / len(group)
        if not (is_chain and ring[-1] in group and call.participants == len(ring)):
            leaves += load
        if not (is_chain and ring[0] in group):
            comes_in += load
    return leaves, comes_in


def _list_joined(
    link: DeviceLink, devices: DeviceSet, member: str, members: Sequence[str], behind: Sequence[str], way: PeerWay
) -> tuple[str, ...]:
    """Return the members, among them that one, that reach each other without a link that it is behind."""
    if link.tasks or way == "pcie":
        return tuple(behind)
    if way == "host":
        return tuple(name for name in members if name in devices.cards[member])
    task = devices.by_name[member].task
    return tuple(name for name in members if devices.by_name[name].task == task)


def _is_listed(link: DeviceLink, device: Device) -> bool:
    return device.task in link.tasks if link.tasks else device.name in link.gpus
