"""Parse the lists of devices and of tasks that a user writes, such as `cpu:1,gpu:2`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from simplace.devices.device_set import FACTORY_PRIORITY
from simplace.errors import DeviceSpecError, join_choices

MOST_TASKS = 64
MOST_DEVICES = 64  # of a type, in a task

_TASK_ENTRY = re.compile(
    r"(?:(?:(?P<times>[0-9]{1,9})x)?(?P<job>[A-Za-z][A-Za-z0-9_]*)"
    r"|/job:(?P<full>[A-Za-z][A-Za-z0-9_]*)(?:/replica:0)?/task:(?P<index>[0-9]{1,9}))=(?P<list>.+)"
)


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
                f"cannot read {entry!r} in the task list {text!r}; write tasks like ps=cpu:1+2xworker=gpu:2 "
                "or /job:worker/task:0=cpu:1,gpu:2"
            )
        if len(tasks) + int(found["times"] or 1) > MOST_TASKS:
            raise _wrong_task_count(text, len(tasks) + int(found["times"] or 1))
        job, counts = found["job"] or found["full"], parse_counts(found["list"])
        first = next_index(tasks, job) if found["index"] is None else int(found["index"])
        for index in range(first, first + int(found["times"] or 1)):
            if (job, index) in tasks:
                raise DeviceSpecError(f"the task list {text!r} names /job:{job}/task:{index} twice")
            tasks[job, index] = counts
    if not tasks:
        raise _wrong_task_count(text, 0)
    return [(job, index, counts) for (job, index), counts in tasks.items()]


def _wrong_task_count(text: str, count: int) -> DeviceSpecError:
    return DeviceSpecError(f"the task list {text!r} has {count} tasks; a cluster has 1 to {MOST_TASKS}")


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
        found = re.fullmatch(r"(?P<type>[A-Za-z]+)(?::(?P<count>[0-9]{1,9}))?", part)
        if found is None:
            raise DeviceSpecError(
                f"cannot read {part!r} in the device list {text!r}; write a type and how many there are of it, "
                "such as cpu:1,gpu:2"
            )
        kind = found["type"].upper()
        if kind not in FACTORY_PRIORITY:
            raise DeviceSpecError(
                f"{found['type']!r} in the device list {text!r} is not a device type that simplace can emulate; "
                f"the types are {join_choices(k.lower() for k in FACTORY_PRIORITY)}"
            )
        if kind in counts:
            raise DeviceSpecError(f"the device list {text!r} names {part.split(':')[0]!r} twice; give their sum")
        counts[kind] = 1 if found["count"] is None else int(found["count"])
    if counts.setdefault("CPU", 1) < 1:
        raise DeviceSpecError(f"the device list {text!r} has no CPU; TensorFlow always needs one, such as cpu:1")
    if max(counts.values()) > MOST_DEVICES:
        raise DeviceSpecError(f"the device list {text!r} names more than {MOST_DEVICES} devices of one type")
    return sorted(counts.items(), key=lambda item: item[0] != "CPU")
