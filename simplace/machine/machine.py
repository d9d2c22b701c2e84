"""The emulated machine: its CPU and GPU devices, or those of a cluster of such machines."""

from __future__ import annotations

from dataclasses import dataclass

GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Task:
    """Describe one task of a cluster: a process of a job, with CPU and GPU devices of its own.

    >>> Task("worker", 1, gpus=2).name
    '/job:worker/task:1'
    """

    job: str
    index: int
    cpus: int = 1
    gpus: int = 0

    @property
    def name(self) -> str:
        """Return the task as a partial device name."""
        return f"/job:{self.job}/task:{self.index}"

    @property
    def device_names(self) -> list[str]:
        """List the full names of the task's devices, CPUs first."""
        prefix = f"/job:{self.job}/replica:0/task:{self.index}/device:"
        return [f"{prefix}CPU:{i}" for i in range(self.cpus)] + [f"{prefix}GPU:{i}" for i in range(self.gpus)]


@dataclass(frozen=True, slots=True)
class SharedLink:
    """Describe a link that several GPUs or tasks share: a PCIe switch, a network card.

    `gpus` are physical GPUs of a machine, in a cluster those of `task`: what passes between them and the host passes
    the link. Or `tasks` are those of a cluster: what they send to, or receive from, tasks that are not on the list
    passes it. Tasks are named as by `Task.name`. `bandwidth` is in bytes/s in each direction, 0 for that of one link of
    its kind.
    """

    name: str
    bandwidth: int = 0
    gpus: tuple[int, ...] = ()
    task: str = ""
    tasks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Machine:
    """Describe the devices of one emulated machine, or of a cluster.

    `gpus` counts physical GPUs of `gpu_memory` bytes each. `virtual_gpus[i]` lists the memory limits, in bytes, of
    the logical devices that physical GPU i is split into; an empty entry, or a missing one, leaves it whole.
    `visible` names the physical GPUs that the program sees, in order; None shows them all.
    `tasks` are those of a cluster; the program runs as the first one, whose devices are `cpus` and `gpus`. With
    `connected`, it begins as if it had connected to the cluster. `shared_links` are those of PCIe and of the network
    that several GPUs or tasks share.

    >>> Machine(gpus=2, virtual_gpus=((GIB, GIB),)).logical_gpus
    3
    >>> Machine(gpus=4, visible=(1, 3)).logical_gpus
    2
    """

    cpus: int = 1
    gpus: int = 1
    gpu_memory: int = 16 * GIB
    virtual_gpus: tuple[tuple[int, ...], ...] = ()
    visible: tuple[int, ...] | None = None
    tasks: tuple[Task, ...] = ()
    connected: bool = False
    shared_links: tuple[SharedLink, ...] = ()

    @property
    def visible_gpus(self) -> tuple[int, ...]:
        """List the physical GPUs that the program sees, by number."""
        return tuple(range(self.gpus)) if self.visible is None else self.visible

    @property
    def logical_gpus(self) -> int:
        """Count the logical GPUs that the program sees before it changes anything itself."""
        return len(self.hardware_of_gpus)

    @property
    def hardware_of_gpus(self) -> tuple[int, ...]:
        """List the physical GPU behind each logical one that the program sees before it changes anything itself.

        >>> Machine(gpus=3, virtual_gpus=((GIB, GIB),), visible=(2, 0)).hardware_of_gpus
        (2, 0, 0)
        """
        return tuple(gpu for gpu in self.visible_gpus for _ in self.split_of(gpu) or (0,))

    @property
    def has_gpus(self) -> bool:
        """Return whether there is a GPU anywhere in the cluster."""
        return self.gpus > 0 or any(task.gpus for task in self.tasks)

    def split_of(self, gpu: int) -> tuple[int, ...]:
        """Return the memory limits that physical GPU `gpu` is split into, () where it is whole."""
        return self.virtual_gpus[gpu] if gpu < len(self.virtual_gpus) else ()

    def of_task(self, job: str, index: int) -> Machine | None:
        """Return the machine behind a task of the program's own cluster, None for one that should be in `tasks`.

        Without `tasks` each one is behind such a machine, and so it is for a program that begins connected and then
        names another cluster.
        """
        for task in self.tasks:
            if (task.job, task.index) == (job, index):
                return Machine(task.cpus, task.gpus, self.gpu_memory)
        return self if not self.tasks or self.connected else None


def make_cluster(
    tasks: tuple[Task, ...],
    *,
    gpu_memory: int = 16 * GIB,
    connected: bool = False,
    shared_links: tuple[SharedLink, ...] = (),
) -> Machine:
    """Make the machine of a cluster; the program runs as the chief, or else as the first task.

    >>> make_cluster((Task("worker", 0), Task("chief", 0, gpus=2))).tasks[0].job
    'chief'
    """
    ordered = tuple(sorted(tasks, key=lambda task: task.job != "chief"))
    first = ordered[0]
    return Machine(first.cpus, first.gpus, gpu_memory, tasks=ordered, connected=connected, shared_links=shared_links)


TWO_TASKS = make_cluster((Task("worker", 0, gpus=2), Task("worker", 1, gpus=2)), connected=True)
