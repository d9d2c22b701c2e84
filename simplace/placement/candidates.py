"""The devices that a colocation group may have, best first, and how the list came to be.

Mirrors GetDevicesForNode, GetSoftDeviceCandidates and FilterSupportedDevices
(tensorflow/core/common_runtime/colocation_graph.cc).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from simplace.devices.device_name import DeviceName
from simplace.devices.device_set import Device, DeviceSet
from simplace.placement.kernel_support import Types


class Fallback(Enum):
    """The constraints that soft placement dropped to find a device."""

    NONE = "none"
    REQUEST_DROPPED = "request dropped"
    RESOURCE_DROPPED = "resource device dropped"


@dataclass(frozen=True, slots=True)
class Constraints:
    """Record of the constraints of a colocation group: three partial device names and the device types with kernels."""

    requested: DeviceName
    assigned: DeviceName
    resource: DeviceName
    types: Types


@dataclass(frozen=True, slots=True)
class Candidates:
    """List the devices a group may have, best first; empty where no device fits."""

    devices: tuple[Device, ...]
    constraints: Constraints
    fallback: Fallback = Fallback.NONE


class CandidateFinder:
    """Find candidates for one device set, default device and soft-placement setting, once per constraints."""

    def __init__(self, devices: DeviceSet, default: Device | None, soft_placement: bool) -> None:
        self._devices = devices
        self._default = default
        self._soft = soft_placement
        self._known: dict[tuple[DeviceName, DeviceName, DeviceName, Types], Candidates] = {}
        self._same: dict[tuple[int, int, int, int], Candidates] = {}  # by the ids of what `_alive` keeps
        self._alive: list[tuple[object, ...]] = []

    def find(self, requested: DeviceName, assigned: DeviceName, resource: DeviceName, types: Types) -> Candidates:
        """Return the candidates of a group with these constraints."""
        ids = (id(requested), id(assigned), id(resource), id(types))
        found = self._same.get(ids)  # most groups share the very objects, which takes no hash of names to see
        if found is None:
            key = (requested, assigned, resource, types)
            found = self._known.get(key)
            if found is None:
                found = self._known[key] = self._search(Constraints(*key))
            self._same[ids] = found
            self._alive.append(key)
        return found

    def devices(self) -> list[Device]:
        """List all devices in the order of TensorFlow's own set: a master's come after those of the other tasks.

        So it is in distributed_runtime/master.cc; a function sees the devices of its own task first.
        """
        return sorted(self._devices, key=lambda device: self._default is None and device.is_local)

    def _search(self, group: Constraints) -> Candidates:
        devices = self._fitting(group.requested, group.types)
        if devices or not self._soft or not group.requested.is_set:
            return Candidates(devices, group)
        relaxed = _relax_spec(group.requested, keep=(group.assigned, group.resource))
        devices = self._fitting(relaxed, group.types)
        if devices:
            return Candidates(devices, group, Fallback.REQUEST_DROPPED)
        relaxed = _relax_spec(group.requested, keep=(group.assigned,))
        devices = self._fitting(relaxed, group.types)
        return Candidates(devices, group, Fallback.RESOURCE_DROPPED if devices else Fallback.NONE)

    def _fitting(self, spec: DeviceName, types: Types) -> tuple[Device, ...]:
        return order_candidates(self._devices, self._devices.matching(spec), types, self._default)


def order_candidates(
    among: DeviceSet, devices: Iterable[Device], types: Types, default: Device | None
) -> tuple[Device, ...]:
    """Keep the devices of a set that the given types allow, best first.

    The default device comes first whatever its type, then they go by kernel priority, device type, local before
    remote, and name as plain text (so GPU:10 comes before GPU:2).
    """
    priority: dict[str, int] = {}
    kept: list[Device] = []
    for device in devices:
        allowed = [kernel_priority for kind, kernel_priority in types if device.counts_as(kind)]
        if allowed:
            priority[device.name] = max(allowed)
            kept.append(device)
    first = default.name if default is not None else ""
    kept.sort(key=lambda d: (d.name != first, -priority[d.name], among.type_order(d.type), not d.is_local, d.name))
    return tuple(kept)


def _relax_spec(spec: DeviceName, keep: tuple[DeviceName, ...]) -> DeviceName:
    keep_type = any(name.type is not None for name in keep)
    keep_id = any(name.id is not None for name in keep)
    return spec._replace(type=spec.type if keep_type else None, id=spec.id if keep_id else None)
