"""Read the machine or cluster that the user requests: a list, a TOML file, what this computer has, what is visible."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from simplace.errors import DeviceSpecError, MalformedError, UnreadableError
from simplace.input_file import read_toml
from simplace.machine.device_list import MOST_TASKS, next_index, parse_counts, parse_tasks
from simplace.machine.file_values import check_list, check_number, check_tables, parse_bytes, refuse_unknown_keys
from simplace.machine.machine import Machine, Task, make_cluster
from simplace.machine.shared_link_table import read_shared_links

MOST_GPUS = 1024
_LONGEST_NUMBER = 10  # digits
_NVIDIA_GPUS = Path("/proc/driver/nvidia/gpus")


def parse_machine(spec: str | None, visible: str | None, environment: Mapping[str, str]) -> tuple[Machine, str]:
    """Return the machine and one sentence that says where it comes from.

    `spec` is a device list (`cpu:1,gpu:2`), the tasks of a cluster (`ps=cpu:1+2xworker=gpu:2`) or the path of a TOML
    file, None for what TensorFlow would see here.
    `visible` is the user's list of visible physical GPUs; without one, CUDA_VISIBLE_DEVICES of `environment` holds.
    """
    found, where = _from_spec(spec)
    if found.tasks and visible is not None:
        raise DeviceSpecError("--visible is for one machine; give each task of the cluster the GPUs that it sees")
    if found.tasks:
        return found, where
    chosen, why = visible, "--visible"
    if chosen is None and "CUDA_VISIBLE_DEVICES" in environment:
        chosen, why = environment["CUDA_VISIBLE_DEVICES"], "CUDA_VISIBLE_DEVICES"
    if chosen is None:
        return found, where
    numbers = parse_visible(chosen, found.gpus, strict=visible is not None)
    made = replace(found, visible=numbers)
    logical = [f"GPU:{i} is physical GPU {number}" for i, number in enumerate(made.hardware_of_gpus)]
    shown = ", ".join(logical) or "no GPU is visible"
    return made, f"{where}; {why}={chosen!r}: {shown}"


def parse_visible(text: str, gpus: int, *, strict: bool) -> tuple[int, ...]:
    """Read a list of physical GPU numbers in the order in which TensorFlow numbers them from GPU:0.

    As for CUDA, an entry that names no GPU ends the list; `strict` makes it an error instead.

    >>> parse_visible("2,0", 4, strict=True), parse_visible("0,9,1", 4, strict=False), parse_visible("", 4, strict=True)
    ((2, 0), (0,), ())
    """
    numbers: list[int] = []
    for part in (piece.strip() for piece in text.split(",") if text.strip()):
        known = part.isdecimal() and len(part) < _LONGEST_NUMBER and int(part) < gpus and int(part) not in numbers
        if not known and strict:
            raise DeviceSpecError(
                f"{part!r} in the visible GPUs {text!r} is not the number of a GPU, or is listed twice; "
                + (f"the numbers are 0 to {gpus - 1}" if gpus else "this machine has no GPU")
            )
        if not known:
            break
        numbers.append(int(part))
    return tuple(numbers)


def _from_spec(spec: str | None) -> tuple[Machine, str]:
    if spec is None:
        return _detect_devices()
    if "=" in spec and not spec.endswith(".toml"):
        return make_cluster(tuple(_make_task(*task) for task in parse_tasks(spec))), f"devices as given: {spec}"
    if spec.endswith(".toml") or "/" in spec:
        made, described = read_machine_file(Path(spec))
        return made, f"devices as {spec} describes them: {described}"
    counts = dict(parse_counts(spec))
    return Machine(counts["CPU"], counts.get("GPU", 0)), f"devices as given: {spec}"


def _detect_devices() -> tuple[Machine, str]:
    count = len(list(_NVIDIA_GPUS.iterdir())) if _NVIDIA_GPUS.is_dir() else 0
    if count:
        return Machine(1, count), f"devices as in this computer: cpu:1,gpu:{count}"
    return Machine(1, 1), "devices cpu:1,gpu:1, since this computer has no GPU; --devices chooses others"


def read_machine_file(path: Path) -> tuple[Machine, str]:
    """Read a machine from a TOML file, and describe it in a few words; raise `DeviceSpecError` for what is unknown.

    The file holds `cpus = 1`, `visible = [0, 1]`, and a table `[[gpu]]` per kind of GPU with `count`, `memory`
    ("16 GiB") and `virtual`, the memory of each logical GPU that a physical one is split into. `name` is free text.
    The file of a cluster holds a table `[[task]]` per kind of task instead, with `job`, `index` (the next one by
    default), `count`, `cpus` and `gpus`; with `memory`, that of each GPU, and with `connected = true`, for a program
    that is to begin as if it had called tf.config.experimental_connect_to_cluster. Both may hold tables
    `[[shared_link]]`, see `shared_link_table`.
    """

    try:
        values = read_toml(path)
    except MalformedError as error:
        raise DeviceSpecError(f"{path}: not a TOML file: {error}") from None
    except UnreadableError as error:
        raise DeviceSpecError(f"{path}: cannot read the device file: {error}") from None
    if "task" in values:
        return _read_cluster(path, values)
    refuse_unknown_keys(path, "the file", values, {"name", "cpus", "gpu", "visible", "task", "shared_link"})
    gpus: list[tuple[int, tuple[int, ...]]] = []
    for entry in check_tables(path, values.get("gpu", [])):
        gpus += _read_gpus(path, entry)
        if sum(max(1, len(split)) for _, split in gpus) > MOST_GPUS:
            raise DeviceSpecError(f"{path}: there are more than {MOST_GPUS} GPUs, virtual ones included")
    memories = {memory for memory, _ in gpus}
    if len(memories) > 1:
        raise DeviceSpecError(f"{path}: all GPUs need the same memory, since TensorFlow's emulation has one size")
    made = Machine(
        check_number(path, "cpus", values.get("cpus", 1), least=1),
        len(gpus),
        memories.pop() if memories else Machine().gpu_memory,
        tuple(split for _, split in gpus),
        shared_links=read_shared_links(path, values.get("shared_link", []), {"": len(gpus)}),
    )
    described = _describe_machine(values)
    if "visible" not in values:
        return made, described
    text = ",".join(str(number) for number in check_list(path, "visible", values["visible"]))
    try:
        return replace(made, visible=parse_visible(text, len(gpus), strict=True)), described
    except DeviceSpecError as error:
        raise DeviceSpecError(f"{path}: {error}") from None


def _read_cluster(path: Path, values: Mapping[str, Any]) -> tuple[Machine, str]:
    refuse_unknown_keys(path, "the file of a cluster", values, {"name", "task", "memory", "connected", "shared_link"})
    tasks: dict[tuple[str, int], Task] = {}
    for entry in check_tables(path, values["task"], "task of a cluster as a table [[task]]"):
        for task in _read_tasks(path, entry, tasks):
            if (task.job, task.index) in tasks:
                raise DeviceSpecError(f"{path}: {task.name} is listed twice; omit index to take the next free one")
            tasks[task.job, task.index] = task
        if len(tasks) > MOST_TASKS:
            raise DeviceSpecError(f"{path}: there are more than {MOST_TASKS} tasks; a cluster has 1 to {MOST_TASKS}")
    if not tasks:
        raise DeviceSpecError(f"{path}: there are 0 tasks; a cluster has 1 to {MOST_TASKS}")
    connected = values.get("connected", False)
    if not isinstance(connected, bool):
        raise DeviceSpecError(f"{path}: connected = {connected!r} must be true or false")
    memory = parse_bytes(path, values.get("memory", "16 GiB"))
    links = read_shared_links(path, values.get("shared_link", []), {task.name: task.gpus for task in tasks.values()})
    made = make_cluster(tuple(tasks.values()), gpu_memory=memory, connected=connected, shared_links=links)
    return made, values.get("name", "a cluster")


def _read_tasks(path: Path, entry: dict[str, Any], known: Mapping[tuple[str, int], Task]) -> list[Task]:
    refuse_unknown_keys(path, "[[task]]", entry, {"job", "index", "count", "cpus", "gpus"})
    job = entry.get("job", "worker")
    if not isinstance(job, str) or not re.fullmatch("[A-Za-z][A-Za-z0-9_]*", job):
        raise DeviceSpecError(f"{path}: job = {job!r} must be a name of letters, digits and _, such as 'worker'")
    first = check_number(path, "index", entry.get("index", next_index(known, job)), least=0, most=1 << 20)
    count = check_number(path, "count", entry.get("count", 1), least=1)
    cpus = check_number(path, "cpus", entry.get("cpus", 1), least=1)
    gpus = check_number(path, "gpus", entry.get("gpus", 0), least=0)
    return [Task(job, index, cpus, gpus) for index in range(first, first + count)]


def _make_task(job: str, index: int, counts: Iterable[tuple[str, int]]) -> Task:
    devices = dict(counts)
    return Task(job, index, devices["CPU"], devices.get("GPU", 0))


def _describe_machine(values: Mapping[str, Any]) -> str:
    """Return a machine's description with the names in its file, such as "a workstation with 2 x T4, 16 GiB"."""
    gpus = [
        f"{gpu.get('count', 1)} x {gpu.get('name', 'GPU')}, {gpu.get('memory', '16 GiB')}"
        for gpu in values.get("gpu", [])
    ]
    return f"{values.get('name', 'a machine')} with {' and '.join(gpus) or 'no GPU'}"


def _read_gpus(path: Path, entry: dict[str, Any]) -> list[tuple[int, tuple[int, ...]]]:
    refuse_unknown_keys(path, "[[gpu]]", entry, {"name", "count", "memory", "virtual"})
    memory = parse_bytes(path, entry.get("memory", "16 GiB"))
    split = tuple(parse_bytes(path, part) for part in check_list(path, "virtual", entry.get("virtual", [])))
    if sum(split) > memory:
        raise DeviceSpecError(f"{path}: the virtual GPUs need more memory than the {memory >> 20} MiB of their GPU")
    return [(memory, split)] * check_number(path, "count", entry.get("count", 1), least=0)
