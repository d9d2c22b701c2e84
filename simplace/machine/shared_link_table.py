"""Read the tables of a machine file that describe links which several GPUs or tasks share."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from simplace.errors import DeviceSpecError, join_choices
from simplace.machine.file_values import check_list, check_tables, refuse_unknown_keys
from simplace.machine.machine import SharedLink

# Bytes a second; "Gb/s" is none of them, since some write it for bits and some for bytes.
_UNITS = {
    "B/s": 1.0, "kB/s": 1e3, "KB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9, "TB/s": 1e12,
    "KiB/s": 2.0**10, "MiB/s": 2.0**20, "GiB/s": 2.0**30,
    "kbit/s": 125.0, "Mbit/s": 125e3, "Gbit/s": 125e6, "Tbit/s": 125e9,
}  # fmt: skip
_MOST = 10**15  # bytes/s

Member = TypeVar("Member", int, str)


def read_shared_links(path: Path, value: Any, gpus: Mapping[str, int]) -> tuple[SharedLink, ...]:
    """Read the tables `[[shared_link]]`; `gpus` counts the GPUs of each task, of "" for one machine.

    Each has a `name`, a `bandwidth` ("16 GB/s") or that of one link of its kind, and either `gpus` (with `task` in a
    cluster) or `tasks`. Raises `DeviceSpecError` for what is unknown.
    """
    links: list[SharedLink] = []
    for entry in check_tables(path, value, "link that is shared as a table [[shared_link]]"):
        refuse_unknown_keys(path, "[[shared_link]]", entry, {"name", "bandwidth", "gpus", "task", "tasks"})
        name = _check_name(path, entry.get("name"), [link.name for link in links])
        bandwidth = _parse_bandwidth(path, name, entry["bandwidth"]) if "bandwidth" in entry else 0
        if ("gpus" in entry) == ("tasks" in entry):
            raise DeviceSpecError(f"{path}: the shared link {name!r} needs a list of either gpus or tasks, not both")
        if "gpus" in entry:
            task = _choose_task(path, name, entry, gpus)
            links.append(SharedLink(name, bandwidth, _read_gpus(path, name, entry["gpus"], gpus[task]), task))
        else:
            links.append(SharedLink(name, bandwidth, tasks=_read_tasks(path, name, entry, gpus)))
    return tuple(links)


def _check_name(path: Path, name: Any, known: Iterable[str]) -> str:
    if not isinstance(name, str) or not name.strip():
        raise DeviceSpecError(f'{path}: [[shared_link]] needs a name, such as name = "PCIe switch 0"')
    if name in known:
        raise DeviceSpecError(f"{path}: two shared links have the name {name!r}; each needs one of its own")
    return name


def _parse_bandwidth(path: Path, name: str, value: Any) -> int:
    """Return bytes a second."""
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(\S+)\s*", value) if isinstance(value, str) else None
    amount = float(found[1]) * _UNITS.get(found[2], 0.0) if found is not None else 0.0
    if not 1 <= amount <= _MOST:
        raise DeviceSpecError(
            f"{path}: cannot read the bandwidth {value!r} of the shared link {name!r}; "
            'write bytes as in "16 GB/s", or bits as in "25 Gbit/s"'
        )
    return round(amount)


def _choose_task(path: Path, name: str, entry: Mapping[str, Any], gpus: Mapping[str, int]) -> str:
    """Return the task whose GPUs share a link, "" on one machine."""
    if "" in gpus:
        if "task" in entry:
            raise DeviceSpecError(f"{path}: the shared link {name!r} has a task, but the file describes no cluster")
        return ""
    if "task" not in entry:
        raise DeviceSpecError(f'{path}: the shared link {name!r} needs the task of its gpus, such as task = "worker:0"')
    return _find_task(path, name, entry["task"], gpus)


def _read_gpus(path: Path, name: str, value: Any, count: int) -> tuple[int, ...]:
    numbers = check_list(path, f"gpus of the shared link {name!r}", value)
    for number in numbers:
        if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < count:
            known = f"the numbers are 0 to {count - 1}" if count else "there is no GPU"
            raise DeviceSpecError(f"{path}: {number!r} in the shared link {name!r} is not the number of a GPU; {known}")
    return _refuse_repeats(path, name, numbers)


def _read_tasks(path: Path, name: str, entry: Mapping[str, Any], gpus: Mapping[str, int]) -> tuple[str, ...]:
    if "task" in entry:
        raise DeviceSpecError(f"{path}: the shared link {name!r} has both task, which is that of gpus, and tasks")
    if "" in gpus:
        raise DeviceSpecError(f"{path}: the shared link {name!r} has tasks, but the file describes no cluster")
    tasks = check_list(path, f"tasks of the shared link {name!r}", entry["tasks"])
    return _refuse_repeats(path, name, [_find_task(path, name, task, gpus) for task in tasks])


def _find_task(path: Path, name: str, value: Any, gpus: Mapping[str, int]) -> str:
    """Return a task as the cluster names it, from "worker:0" or its own name."""
    known = {task.removeprefix("/job:").replace("/task:", ":"): task for task in gpus}
    found = known.get(value.strip(), value.strip()) if isinstance(value, str) else ""
    if found not in gpus:
        raise DeviceSpecError(
            f"{path}: {value!r} in the shared link {name!r} is not a task of the cluster; it has {join_choices(known)}"
        )
    return found


def _refuse_repeats(path: Path, name: str, members: list[Member]) -> tuple[Member, ...]:
    if not members:
        raise DeviceSpecError(f"{path}: the shared link {name!r} lists nothing that shares it")
    twice = next((member for member, count in Counter(members).items() if count > 1), None)
    if twice is not None:
        raise DeviceSpecError(f"{path}: the shared link {name!r} lists {twice!r} twice")
    return tuple(members)
