"""The devices that a placer may use, in TensorFlow's order.

Mirrors tensorflow/core/common_runtime/device_set.cc.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from types import MappingProxyType

from simplace.devices.device_link import DeviceLink
from simplace.devices.device_name import LOCAL_TASK, DeviceName
from simplace.errors import DeviceSpecError

# DeviceFactory::DevicePriority: which device type TensorFlow prefers, highest first. The wheel for Linux is a CUDA
# build, where CPU devices have 70 rather than 60; no other type lies between the two.
FACTORY_PRIORITY = {"GPU": 210, "CPU": 70}

_OTHER_FACTORY_PRIORITY = 50

COMPOSITE = "COMPOSITE"  # composite_device.h: one name for a device on each of several tasks


@dataclass(frozen=True, slots=True)
class Device:
    """Record of a device of a set: `name` is the full name, `spec` the same parsed, `memory` in bytes (0: unknown).

    `members` are the full names of the devices that a composite device stands for. `card` is the number of the physical
    GPU that a logical one is on, among those of its process, -1 where it is not known, and taken to be its own.
    """

    name: str
    spec: DeviceName
    is_local: bool = True
    memory: int = 0
    members: tuple[str, ...] = ()
    card: int = -1

    @property
    def type(self) -> str:
        """Return the device type, such as "GPU"."""
        assert self.spec.type is not None, f"{self.name} is a full device name"
        return self.spec.type

    @property
    def short(self) -> str:
        """Return the name without the part that every local device shares, such as "GPU:0"."""
        return _shorten(self.name)

    @property
    def task(self) -> str:
        """Return the task that the device belongs to, such as "/job:worker/replica:0/task:1"."""
        return self.name.partition("/device:")[0]

    def counts_as(self, device_type: str) -> bool:
        """Return whether kernels of a device type can run here; a composite device takes those of any type."""
        return self.type in (device_type, COMPOSITE)


def shorten_task(name: str) -> str:
    """Return the task in a name as the short names of its devices have it.

    >>> shorten_task("/job:worker/replica:0/task:1")
    'worker/1'
    """
    spec = DeviceName.parse(name)
    assert spec is not None, f"{name} has a task"
    return f"{spec.job}/{spec.task}"


@cache
def _shorten(name: str) -> str:
    spec = DeviceName.parse(name)
    assert spec is not None, f"{name} is a full device name"
    short = f"{spec.type}:{spec.id}"
    return short if name.startswith(LOCAL_TASK + "/") else f"{shorten_task(name)}/{short}"


def make_device(name: str, *, is_local: bool = True, memory: int = 0, members: tuple[str, ...] = ()) -> Device:
    """Make a device from its full name; raise `DeviceSpecError` if a field is missing."""
    spec = DeviceName.parse(name)
    if spec is None or None in spec:
        raise DeviceSpecError(f"{name!r} is not a full device name; one looks like {LOCAL_TASK}/device:GPU:0")
    return Device(str(spec), spec, is_local, memory, members)


class DeviceSet:
    """Record of the devices that a placer may use, in TensorFlow's order.

    `priorities` are the factory priorities by device type, by default those of TensorFlow's wheel. `links` are those
    that several of the devices, or of their tasks, share; a placer has no use for them, a simulated step has.
    """

    def __init__(
        self,
        devices: Iterable[Device],
        priorities: Mapping[str, int] = FACTORY_PRIORITY,
        links: Sequence[DeviceLink] = (),
    ) -> None:
        self.devices: tuple[Device, ...] = tuple(devices)
        self.links: tuple[DeviceLink, ...] = tuple(links)
        self._priorities = priorities
        self._matching: dict[DeviceName, tuple[Device, ...]] = {}
        twice = [d.name for d in self.devices if sum(e.name == d.name for e in self.devices) > 1]
        if twice:
            raise DeviceSpecError(f"device {twice[0]} is listed twice; each device needs a name of its own")

    def __iter__(self) -> Iterator[Device]:
        return iter(self.devices)

    def __len__(self) -> int:
        return len(self.devices)

    def __str__(self) -> str:
        return ", ".join(d.short for d in self.devices)

    @cached_property
    def by_name(self) -> dict[str, Device]:
        """Map full names to devices."""
        return {d.name: d for d in self.devices}

    @cached_property
    def cards(self) -> dict[str, tuple[str, ...]]:
        """Map the full name of each GPU to those of all logical GPUs on its card, in their order."""
        found: dict[object, list[str]] = {}
        for each in self.devices:
            if each.type == "GPU":
                found.setdefault(each.name if each.card < 0 else (each.spec[:3], each.card), []).append(each.name)
        return {name: tuple(names) for names in found.values() for name in names}

    @cached_property
    def types(self) -> tuple[str, ...]:
        """List the distinct device types by factory priority, highest first, then by name."""
        return tuple(sorted({d.type for d in self.devices}, key=self.type_order))

    def type_order(self, device_type: str) -> tuple[int, str]:
        """Return the sort key of a device type: factory priority, highest first, then the name."""
        return type_order(device_type, self._priorities)

    @property
    def host(self) -> Device:
        """Return the first CPU, where TensorFlow keeps what must be in host memory."""
        return next(d for d in self.devices if d.type == "CPU")

    def find_host(self, name: str) -> str:
        """Return the first CPU of a device's task, the device itself where the set has none of it."""
        own = self.by_name[name].spec
        return next((d.name for d in self.devices if d.type == "CPU" and d.spec.same_address_space(own)), name)

    @property
    def home(self) -> DeviceName:
        """Return the task of the first device: the one that places, whose devices are the local ones."""
        return DeviceName(*self.devices[0].spec[:3]) if self.devices else DeviceName()

    def find(self, name: str) -> Device | None:
        """Look a device up by any spelling of its full name."""
        found = self.by_name.get(name)
        if found is not None or not name:
            return found
        spec = DeviceName.parse(name)
        return None if spec is None else self.by_name.get(str(spec))

    def on_cards(self, cards: Mapping[str, int]) -> DeviceSet:
        """Return the same devices with the numbers of the physical GPUs that logical ones are on, by full name."""
        placed = (replace(d, card=cards.get(d.name, d.card)) for d in self.devices)
        return DeviceSet(placed, self._priorities, self.links)

    def joined_by(self, links: Sequence[DeviceLink]) -> DeviceSet:
        """Return the same devices with links that several of them share."""
        return DeviceSet(self.devices, self._priorities, links) if links else self

    def matching(self, spec: DeviceName) -> tuple[Device, ...]:
        """List the devices that fit `spec`, in the set's order (DeviceSet::FindMatchingDevices)."""
        found = self._matching.get(spec)
        if found is None:
            found = tuple(d for d in self.devices if spec.matches(d.spec))
            self._matching[spec] = found
        return found


def type_order(device_type: str, priorities: Mapping[str, int] = FACTORY_PRIORITY) -> tuple[int, str]:
    """Return the sort key of a device type: factory priority, highest first, then the name."""
    return (-priorities.get(device_type, _OTHER_FACTORY_PRIORITY), device_type)


def local_devices(counts: Sequence[tuple[str, int]]) -> DeviceSet:
    """Make the devices of one machine, in TensorFlow's order: the CPUs, then the rest by priority.

    >>> str(local_devices([("GPU", 2), ("CPU", 1)]))
    'CPU:0, GPU:0, GPU:1'
    """
    ordered = sorted(counts, key=lambda item: (item[0] != "CPU", type_order(item[0])))
    return DeviceSet(make_device(f"{LOCAL_TASK}/device:{kind}:{i}") for kind, count in ordered for i in range(count))


def seen_from_the_first(names: Iterable[str], limits: Mapping[str, int] = MappingProxyType({})) -> DeviceSet:
    """Make the devices of a cluster as the first one's task sees them: those of other tasks are not local to it.

    `limits` has the bytes of memory of those that are known.

    >>> task = "/job:worker/replica:0/task:"
    >>> [d.is_local for d in seen_from_the_first([f"{task}1/device:CPU:0", f"{task}0/device:CPU:0"])]
    [True, False]
    """
    made = [make_device(name, memory=limits.get(name, 0)) for name in names]
    return DeviceSet(replace(d, is_local=d.spec[:3] == made[0].spec[:3]) for d in made)
