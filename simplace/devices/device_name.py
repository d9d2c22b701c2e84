"""Device names, wholly or in part, as TensorFlow parses and merges them.

Mirrors tensorflow/core/util/device_name_utils.h (xla/tsl/util/device_name_utils.cc).
"""

from __future__ import annotations

import ctypes
import re
from functools import lru_cache
from typing import Literal, NamedTuple

Merge = Literal["strict", "soft", "override"]

LOCAL_TASK = "/job:localhost/replica:0/task:0"

_COMPONENT = re.compile(
    r"/job:(?P<job>\*|[A-Za-z][A-Za-z0-9_]*)"
    r"|/replica:(?P<replica>\*|[0-9]+)"
    r"|/task:(?P<task>\*|[0-9]+)"
    r"|/device:(?P<type>\*|[A-Za-z][A-Za-z0-9_]*)(?::(?P<id>\*|[0-9]+))?"
    r"|/(?P<legacy>cpu|CPU|gpu|GPU):(?P<legacy_id>\*|[0-9]+)"
)

_NUMBERS = ("replica", "task", "id", "legacy_id")


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
            if found is None or any(map(_exceeds_uint64, found.group(*_NUMBERS))):
                return None
            fields.update(_parse_fields(found))
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
        """Return whether any field is set."""
        return self != _NOWHERE

    def compatible_with(self, other: DeviceName) -> bool:
        """Return whether no field that both set differs."""
        return all(a is None or b is None or a == b for a, b in zip(self, other, strict=True))

    def matches(self, full: DeviceName) -> bool:
        """Return whether each field that is set here equals that of `full`."""
        return all(a is None or a == b for a, b in zip(self, full, strict=True))

    def overwritten_by(self, other: DeviceName) -> DeviceName:
        """Replace each field by the other's where that is set (EnsureSpecification)."""
        if other == _NOWHERE:
            return self
        return _make_device_name([a if b is None else b for a, b in zip(self, other, strict=True)])

    def filled_from(self, other: DeviceName) -> DeviceName:
        """Take each unset field from the other (MergeUnsetDevNames)."""
        return _make_device_name([b if a is None else a for a, b in zip(self, other, strict=True)])

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
        return _merge_names(self, other, how)

    def same_address_space(self, other: DeviceName) -> bool:
        """Return whether both name the same job, replica and task in full."""
        return None not in self[:3] and self[:3] == other[:3]

    def different_address_space(self, other: DeviceName) -> bool:
        """Return whether job, replica or task are set in both and differ."""
        return any(a is not None and b is not None and a != b for a, b in zip(self[:3], other[:3], strict=True))


_NOWHERE = DeviceName()


def _exceeds_uint64(text: str | None) -> bool:
    """Return whether a number is larger than a uint64 (ConsumeLeadingDigits, which the length spares reading it)."""
    return text is not None and text != "*" and (len(text.lstrip("0")) > 20 or int(text) >= 1 << 64)


def _make_device_name(fields: list[str | int | None]) -> DeviceName:
    return DeviceName(*fields)  # type: ignore[arg-type]


def _parse_fields(found: re.Match[str]) -> dict[str, str | int | None]:
    def number(text: str | None) -> int | None:
        return None if text is None or text == "*" else ctypes.c_int32(int(text)).value  # `*val = tmp`

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
def _merge_names(target: DeviceName, other: DeviceName, how: Merge) -> DeviceName:
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
    return _make_device_name(fields)
