"""Find the devices that share each link of a machine, by their names in a program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from simplace.devices.device_link import DeviceLink
from simplace.devices.device_name import LOCAL_TASK, DeviceName
from simplace.devices.device_set import DeviceSet, shorten_task
from simplace.machine.machine import Machine, SharedLink

_Cards = Mapping[str, Mapping[str, int]]  # of each process: its GPUs by full name, with the physical GPUs behind them


def find_device_links(machine: Machine, devices: DeviceSet) -> tuple[DeviceLink, ...]:
    """Return the shared links of a machine, then those of physical GPUs that are split into logical ones.

    On a machine that is not a cluster each process has such links of its own, as each task of a program's own cluster
    is behind such a machine. Links that no GPU of a program is behind are left out.
    """
    cards: dict[str, dict[str, int]] = {}
    for device in devices:
        if device.type == "GPU" and device.card >= 0:
            cards.setdefault(device.task, {})[device.name] = device.card
    described = (link for shared in machine.shared_links for link in _list_links(machine, shared, cards))
    return (*described, *_list_split_cards(machine, cards))


def _list_links(machine: Machine, shared: SharedLink, cards: _Cards) -> Iterator[DeviceLink]:
    if shared.tasks:
        yield DeviceLink(shared.name, shared.bandwidth, tasks=tuple(map(_complete_task, shared.tasks)))
        return
    for process, gpus in cards.items():
        sharing = tuple(name for name, card in gpus.items() if card in shared.gpus)
        if sharing and _is_of(machine, shared, process):
            where = "" if machine.tasks else _name_process(process, cards)
            yield DeviceLink(shared.name + where, shared.bandwidth, sharing)


def _list_split_cards(machine: Machine, cards: _Cards) -> Iterator[DeviceLink]:
    """Yield the links of cards with several logical GPUs, but for those that the machine file describes itself."""
    for process, gpus in cards.items():
        own = [shared.gpus for shared in machine.shared_links if _is_of(machine, shared, process)]
        for card in dict.fromkeys(gpus.values()):
            names = tuple(name for name, number in gpus.items() if number == card)
            if len(names) > 1 and (card,) not in own:
                yield DeviceLink(f"PCIe of physical GPU {card}{_name_process(process, cards)}", 0, names)


def _is_of(machine: Machine, shared: SharedLink, process: str) -> bool:
    return not machine.tasks or _find_task(machine, process) == shared.task


def _name_process(process: str, cards: Iterable[str]) -> str:
    return f" of {shorten_task(process)}" if len([*cards]) > 1 else ""


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
