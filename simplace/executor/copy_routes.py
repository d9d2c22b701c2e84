"""Find which shared links each copy of a step passes, and how long it would take alone.

A copy between a GPU and the host passes each shared link of PCIe that lists the GPU. One between GPUs of a process
passes none where they have NVLink, or lie in one physical GPU; else those of both, but for those that join both where
peers reach each other without the host. One between tasks passes the links of the network that list one of the two, and
of PCIe those of the GPUs whose memory it reads or writes: its bytes go straight on. Each direction is a link too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

from simplace.costs.cost_model import CostModel, PeerWay
from simplace.costs.estimate import EstimatedGraph, estimate_copy
from simplace.devices.device_link import DeviceLink
from simplace.devices.device_set import Device, DeviceSet, shorten_task
from simplace.executor.trace import PassedLink
from simplace.partition.transfers import Copy

_PROBE = 10**9  # bytes: a copy of so many tells the bandwidth of a link that has none of its own


@dataclass(frozen=True, slots=True)
class CopyRoute:
    """Record of a copy alone: nanoseconds before its first byte and those of its bytes, `rate` in bytes/s.

    `ways` has 2 i where it leaves by the shared link i, 2 i + 1 where it comes in by it.
    """

    latency: int
    moving: int
    rate: float
    ways: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Routes:
    """Record of the links that several GPUs or tasks share, and of the route of each copy."""

    links: tuple[PassedLink, ...]
    of_copy: tuple[CopyRoute, ...]


def find_routes(estimated: EstimatedGraph) -> Routes | None:
    """Return the routes of the copies of a step, None where nothing is shared."""
    devices, model = estimated.graph.placed.devices, estimated.model
    if not devices.links:
        return None
    links = tuple(_measure_link(link, devices, model) for link in devices.links)
    return Routes(links, tuple(_find_route(estimated, number) for number in range(len(estimated.graph.copies))))


def _measure_link(link: DeviceLink, devices: DeviceSet, model: CostModel) -> PassedLink:
    sharers = map(shorten_task, link.tasks) if link.tasks else (devices.by_name[name].short for name in link.gpus)
    bandwidth = float(link.bandwidth) or _probe_bandwidth(model, "remote" if link.tasks else "GPU")
    return PassedLink(link.name, bandwidth, tuple(sharers))


def _probe_bandwidth(model: CostModel, target: str) -> float:
    seconds = model.copy(_PROBE, "CPU", target) - model.copy(0, "CPU", target)
    return _PROBE / seconds if seconds > 0 else inf


def _find_route(estimated: EstimatedGraph, number: int) -> CopyRoute:
    devices, copy, size = estimated.graph.placed.devices, estimated.graph.copies[number], estimated.copy_bytes[number]
    whole = round(1e9 * estimated.copy_seconds[number])
    latency = min(whole, round(1e9 * estimate_copy(estimated.model, devices, copy, 0)))
    moving = whole - latency
    ways = tuple(_list_ways(devices, copy, estimated.model.peer_way)) if size else ()
    return CopyRoute(latency, moving, 1e9 * size / moving if moving else inf, ways)


def _list_ways(devices: DeviceSet, copy: Copy, peer_way: PeerWay) -> Iterator[int]:
    source, target = devices.by_name[copy.source], devices.by_name[copy.target]
    is_remote = not source.spec.same_address_space(target.spec)
    ends = (_name_gpu(source, copy.source_memory), _name_gpu(target, copy.target_memory))
    if all(ends) and not is_remote and peer_way == "nvlink":
        return
    for i, link in enumerate(devices.links):
        if link.tasks:
            leaves, enters = (_name_task(end) in link.tasks and is_remote for end in (source, target))
            is_inside = leaves and enters
        else:
            leaves, enters = (end in link.gpus for end in ends)
            is_one = leaves and enters and link.gpus[source.name] == link.gpus[target.name]
            is_inside = leaves and enters and not is_remote and (is_one or peer_way == "pcie")
        if leaves and not is_inside:
            yield 2 * i
        if enters and not is_inside:
            yield 2 * i + 1


def _name_gpu(device: Device, memory: str) -> str:
    """Return the GPU whose memory one end of a copy is in, "" where it is in the host's."""
    return device.name if device.type != "CPU" and memory == "device" else ""


def _name_task(device: Device) -> str:
    return device.name.partition("/device:")[0]
