"""Device names and sets, as TensorFlow parses, merges and orders them.

Names follow xla/tsl/util/device_name_utils.cc, sets follow tensorflow/core/common_runtime/device_set.cc.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Literal, NamedTuple

from simplace.errors import DeviceSpecError, choices

Merge = Literal["strict", "soft", "override"]

LOCAL_TASK = "/job:localhost/replica:0/task:0"
MOST_TASKS = 64

# DeviceFactory::DevicePriority: which device type TensorFlow prefers, highest first. The wheel for Linux is a CUDA
# build, where CPU devices have 70 rather than 60; no other type lies between the two.
FACTORY_PRIORITY = {"GPU": 210, "CPU": 70}
_OTHER_FACTORY_PRIORITY = 50

COMPOSITE = "COMPOSITE"  # composite_device.h: one name for a device on each of several tasks

_COMPONENT = re.compile(
    r"/job:(?P<job>\*|[A-Za-z][A-Za-z0-9_]*)"
    r"|/replica:(?P<replica>\*|[0-9]+)"
    r"|/task:(?P<task>\*|[0-9]+)"
    r"|/device:(?P<type>\*|[A-Za-z][A-Za-z0-9_]*)(?::(?P<id>\*|[0-9]+))?"
    r"|/(?P<legacy>cpu|CPU|gpu|GPU):(?P<legacy_id>\*|[0-9]+)"
)

_TASK_ENTRY = re.compile(
    r"(?:(?:(?P<times>[0-9]+)x)?(?P<job>[A-Za-z][A-Za-z0-9_]*)"
    r"|/job:(?P<full>[A-Za-z][A-Za-z0-9_]*)(?:/replica:0)?/task:(?P<index>[0-9]+))=(?P<list>.+)"
)


class DeviceConflict(Exception):  # noqa: N818  (an answer that callers branch on, not a fault)
    """Report two names that cannot be merged; `str()` is TensorFlow's own sentence."""


class DeviceName(NamedTuple):
    """Specify a device, wholly or in part: an unset field is None (DeviceNameUtils::ParsedName)."""

    job: str | None = None
    replica: int | None = None
    task: int | None = None
    type: str | None = None
    id: int | None = None

    @staticmethod
    @lru_cache(maxsize=65536)
    def parse(text: str) -> DeviceName | None:
        """Read a device string the way TensorFlow's C++ does; None where it would not parse.

        >>> DeviceName.parse("/job:worker/task:1/device:GPU:0")
        DeviceName(job='worker', replica=None, task=1, type='GPU', id=0)
        >>> DeviceName.parse("/cpu:1"), DeviceName.parse("/device:GPU:*").type, DeviceName.parse("gpu0")
        (DeviceName(job=None, replica=None, task=None, type='CPU', id=1), 'GPU', None)
        """
        if text in ("", "/"):
            return DeviceName()
        fields: dict[str, str | int | None] = {}
        at = 0
        while at < len(text):
            found = _COMPONENT.match(text, at)
            if found is None:
                return None
            fields.update(_fields(found))
            at = found.end()
        return DeviceName(**fields)  # type: ignore[arg-type]

    def __str__(self) -> str:
        """Print the set fields as TensorFlow does.

        >>> str(DeviceName(type="GPU")), str(DeviceName(job="a", type="CPU", id=0))
        ('/device:GPU:*', '/job:a/device:CPU:0')
        """
        parts = [
            f"/{field}:{value}"
            for field, value in (("job", self.job), ("replica", self.replica), ("task", self.task))
            if value is not None
        ]
        if self.type is not None:
            parts.append(f"/device:{self.type}:{'*' if self.id is None else self.id}")
        return "".join(parts)

    @property
    def is_set(self) -> bool:
        """Say whether any field is set."""
        return self != _NOWHERE

    def compatible_with(self, other: DeviceName) -> bool:
        """Say whether no field that both set differs."""
        return all(a is None or b is None or a == b for a, b in zip(self, other, strict=True))

    def matches(self, full: DeviceName) -> bool:
        """Say whether each field that is set here equals that of `full`."""
        return all(a is None or a == b for a, b in zip(self, full, strict=True))

    def overwritten_by(self, other: DeviceName) -> DeviceName:
        """Replace each field by the other's where that is set (EnsureSpecification)."""
        if other == _NOWHERE:
            return self
        return _made([a if b is None else b for a, b in zip(self, other, strict=True)])

    def filled_from(self, other: DeviceName) -> DeviceName:
        """Take each unset field from the other (MergeUnsetDevNames)."""
        return _made([b if a is None else a for a, b in zip(self, other, strict=True)])

    def merged(self, other: DeviceName, how: Merge) -> DeviceName:
        """Merge two names field by field; raise `DeviceConflict` where `how` does not allow a difference.

        A soft conflict of types clears type and id, one of ids clears the id, and nothing remembers it.

        >>> gpu0, cpu0 = DeviceName(type="GPU", id=0), DeviceName(type="CPU", id=0)
        >>> gpu0.merged(cpu0, "soft"), str(gpu0.merged(cpu0, "override"))
        (DeviceName(job=None, replica=None, task=None, type=None, id=None), '/device:CPU:0')
        """
        if other == _NOWHERE or self == other:
            return self
        if self == _NOWHERE:
            return other
        return _merged(self, other, how)

    def same_address_space(self, other: DeviceName) -> bool:
        """Say whether both name the same job, replica and task in full."""
        return None not in self[:3] and self[:3] == other[:3]

    def different_address_space(self, other: DeviceName) -> bool:
        """Say whether job, replica or task are set in both and differ."""
        return any(a is not None and b is not None and a != b for a, b in zip(self[:3], other[:3], strict=True))


_NOWHERE = DeviceName()


def _made(fields: list[str | int | None]) -> DeviceName:
    return DeviceName(*fields)  # type: ignore[arg-type]


def _fields(found: re.Match[str]) -> dict[str, str | int | None]:
    def number(text: str | None) -> int | None:
        return None if text is None or text == "*" else int(text)

    groups = found.groupdict()
    if groups["legacy"] is not None:
        return {"type": groups["legacy"].upper(), "id": number(groups["legacy_id"])}
    if groups["type"] is not None:
        return {"type": None if groups["type"] == "*" else groups["type"], "id": number(groups["id"])}
    if groups["job"] is not None:
        return {"job": None if groups["job"] == "*" else groups["job"]}
    if groups["replica"] is not None:
        return {"replica": number(groups["replica"])}
    return {"task": number(groups["task"])}


@lru_cache(maxsize=65536)
def _merged(target: DeviceName, other: DeviceName, how: Merge) -> DeviceName:
    fields: list[str | int | None] = list(target)
    for i, plural in enumerate(("jobs", "replicas", "tasks", "types", "ids")):
        mine, theirs = target[i], other[i]
        if theirs is None:
            continue
        if mine is None or mine == theirs:
            fields[i] = theirs
            continue
        if i < 3 or how == "strict":
            so_far = DeviceName(*fields)  # type: ignore[arg-type]
            raise DeviceConflict(f"Cannot merge devices with incompatible {plural}: '{so_far}' and '{other}'")
        if how == "override":
            fields[i] = theirs
            continue
        fields[i:] = [None] * (5 - i)
        break
    return _made(fields)


@dataclass(frozen=True, slots=True)
class Device:
    """Hold one device of a set: `name` is the full name, `spec` the same parsed, `memory` in bytes (0: unknown)."""

    name: str
    spec: DeviceName
    is_local: bool = True
    memory: int = 0

    @property
    def type(self) -> str:
        """Return the device type, such as "GPU"."""
        assert self.spec.type is not None, f"{self.name} is a full device name"
        return self.spec.type

    @property
    def short(self) -> str:
        """Return the name without the part that every local device shares, such as "GPU:0"."""
        short = f"{self.type}:{self.spec.id}"
        if self.name.startswith(LOCAL_TASK + "/"):
            return short
        return f"{self.spec.job}/{self.spec.task}/{short}"

    def counts_as(self, device_type: str) -> bool:
        """Say whether kernels of a device type can run here; a composite device takes those of any type."""
        return self.type in (device_type, COMPOSITE)


def device(name: str, *, is_local: bool = True, memory: int = 0) -> Device:
    """Make a device from its full name; raise `DeviceSpecError` if a field is missing."""
    spec = DeviceName.parse(name)
    if spec is None or None in spec:
        raise DeviceSpecError(f"{name!r} is not a full device name; one looks like {LOCAL_TASK}/device:GPU:0")
    return Device(str(spec), spec, is_local, memory)


class DeviceSet:
    """Hold the devices that a placer may use, in TensorFlow's order.

    `priorities` are the factory priorities by device type, by default those of TensorFlow's wheel.
    """

    def __init__(self, devices: Iterable[Device], priorities: Mapping[str, int] = FACTORY_PRIORITY) -> None:
        self.devices: tuple[Device, ...] = tuple(devices)
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

    @property
    def home(self) -> DeviceName:
        """Return the task of the first device: the one that places, whose devices are the local ones."""
        return DeviceName(*self.devices[0].spec[:3]) if self.devices else _NOWHERE

    def find(self, name: str) -> Device | None:
        """Look a device up by any spelling of its full name."""
        found = self.by_name.get(name)
        if found is not None or not name:
            return found
        spec = DeviceName.parse(name)
        return None if spec is None else self.by_name.get(str(spec))

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
    return DeviceSet(device(f"{LOCAL_TASK}/device:{kind}:{i}") for kind, count in ordered for i in range(count))


def seen_from_the_first(names: Iterable[str]) -> DeviceSet:
    """Make the devices of a cluster as the first one's task sees them: those of other tasks are not local to it.

    >>> task = "/job:worker/replica:0/task:"
    >>> [d.is_local for d in seen_from_the_first([f"{task}1/device:CPU:0", f"{task}0/device:CPU:0"])]
    [True, False]
    """
    made = [device(name) for name in names]
    return DeviceSet(replace(d, is_local=d.spec[:3] == made[0].spec[:3]) for d in made)


def parse_tasks(text: str) -> list[tuple[str, int, list[tuple[str, int]]]]:
    """Read the tasks of a cluster, such as `ps=cpu:1+2xworker=gpu:2`: job, index and counts of devices of each.

    Entries are joined by `+` or blanks. Each is `JOB=LIST` for the next task of the job, `NxJOB=LIST` for N of them, or
    `/job:JOB/task:INDEX=LIST`. Tasks come in the order written. Raises `DeviceSpecError`.

    >>> parse_tasks("ps=cpu:1+2xworker=gpu:2")[1:]
    [('worker', 0, [('CPU', 1), ('GPU', 2)]), ('worker', 1, [('CPU', 1), ('GPU', 2)])]
    >>> parse_tasks("/job:worker/task:3=cpu:2")
    [('worker', 3, [('CPU', 2)])]
    """
    tasks: dict[tuple[str, int], list[tuple[str, int]]] = {}
    for entry in re.split(r"[+\s]+", text.strip()):
        found = _TASK_ENTRY.fullmatch(entry)
        if found is None:
            raise DeviceSpecError(
                f"cannot read {entry!r} in the tasks {text!r}; write tasks like ps=cpu:1+2xworker=gpu:2 "
                "or /job:worker/task:0=cpu:1,gpu:2"
            )
        job, counts = found["job"] or found["full"], parse_counts(found["list"])
        first = next_index(tasks, job) if found["index"] is None else int(found["index"])
        for index in range(first, first + int(found["times"] or 1)):
            if (job, index) in tasks:
                raise DeviceSpecError(f"the tasks {text!r} name /job:{job}/task:{index} twice")
            tasks[job, index] = counts
    if not 1 <= len(tasks) <= MOST_TASKS:
        raise DeviceSpecError(f"the tasks {text!r} are {len(tasks)}; a cluster has 1 to {MOST_TASKS}")
    return [(job, index, counts) for (job, index), counts in tasks.items()]


def next_index(tasks: Iterable[tuple[str, int]], job: str) -> int:
    """Return the index after the highest one of a job.

    >>> next_index([("ps", 0), ("worker", 2)], "worker"), next_index([], "ps")
    (3, 0)
    """
    return max((index for name, index in tasks if name == job), default=-1) + 1


def parse_counts(text: str) -> list[tuple[str, int]]:
    """Read a device list such as `cpu:1,gpu:2`, where a number counts devices; raise `DeviceSpecError`.

    >>> parse_counts("cpu:1,gpu:2"), parse_counts("gpu:1")
    ([('CPU', 1), ('GPU', 2)], [('CPU', 1), ('GPU', 1)])
    """
    counts: dict[str, int] = {}
    for part in (piece.strip() for piece in text.split(",")):
        found = re.fullmatch(r"(?P<type>[A-Za-z]+)(?::(?P<count>[0-9]+))?", part)
        if found is None:
            raise DeviceSpecError(
                f"cannot read {part!r} in the device list {text!r}; write a type and how many there are of it, "
                "such as cpu:1,gpu:2"
            )
        kind = found["type"].upper()
        if kind not in FACTORY_PRIORITY:
            raise DeviceSpecError(
                f"{found['type']!r} in the device list {text!r} is not a device type that simplace can emulate; "
                f"the types are {choices(k.lower() for k in FACTORY_PRIORITY)}"
            )
        if kind in counts:
            raise DeviceSpecError(f"the device list {text!r} names {part.split(':')[0]!r} twice; add the numbers up")
        counts[kind] = 1 if found["count"] is None else int(found["count"])
    if counts.setdefault("CPU", 1) < 1:
        raise DeviceSpecError(f"the device list {text!r} has no CPU; TensorFlow always needs one, such as cpu:1")
    if max(counts.values()) > 64:
        raise DeviceSpecError(f"the device list {text!r} asks for more than 64 devices of one type")
    return sorted(counts.items(), key=lambda item: item[0] != "CPU")
