"""Find the devices that share each link of a machine, by their names in a program."""

from __future__ import annotations

from collections.abc import Mapping

from simplace.devices.device_link import DeviceLink
from simplace.devices.device_name import LOCAL_TASK, DeviceName
from simplace.devices.device_set import shorten_task
from simplace.machine.machine import Machine, SharedLink

_Processes = Mapping[str, Mapping[str, int]]


def find_device_links(machine: Machine, gpus: Mapping[str, int]) -> tuple[DeviceLink, ...]:
    """Return the shared links of a machine; `gpus` maps the full names of GPUs to the physical GPUs behind them.

    On a machine that is not a cluster each process has such links of its own, as each task of a program's own cluster
    is behind such a machine. Links that no GPU of a program is behind are left out.
    """
    processes: dict[str, dict[str, int]] = {}
    for name, number in gpus.items():
        processes.setdefault(name.partition("/device:")[0], {})[name] = number
    return tuple(link for shared in machine.shared_links for link in _list_links(machine, shared, processes))


def _list_links(machine: Machine, shared: SharedLink, processes: _Processes) -> list[DeviceLink]:
    if shared.tasks:
        return [DeviceLink(shared.name, shared.bandwidth, tasks=tuple(map(_complete_task, shared.tasks)))]
    links = []
    for process, gpus in processes.items():
        sharing = {name: number for name, number in gpus.items() if number in shared.gpus}
        if sharing and (not machine.tasks or _find_task(machine, process) == shared.task):
            where = f" of {shorten_task(process)}" if not machine.tasks and len(processes) > 1 else ""
            links.append(DeviceLink(shared.name + where, shared.bandwidth, sharing))
    return links


def _find_task(machine: Machine, process: str) -> str:
    """Return the task of a cluster that a process is: one that has joined none yet runs as the first."""
    if process == LOCAL_TASK:
        return machine.tasks[0].name
    return process.replace("/replica:0", "")


def _complete_task(task: str) -> str:
    """Return a task with its replica.

    >>> _complete_task("/job:worker/task:1")
    '/job:worker/replica:0/task:1'
    """
    spec = DeviceName.parse(task)
    assert spec is not None, f"{task} has a task"
    return f"/job:{spec.job}/replica:0/task:{spec.task}"
