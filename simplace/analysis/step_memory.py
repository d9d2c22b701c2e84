"""Whether a step fits in the memory of its devices, with how large a batch, and what holds that memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from types import MappingProxyType
from typing import Self

from simplace.analysis.batch_memory import BatchMemory
from simplace.analysis.memory import MemoryUse, Resize, keep_size, memory_use, replay_step
from simplace.analysis.memory_kinds import Part, sum_other_variables
from simplace.analysis.memory_replay import AT_ONCE, MemoryBefore
from simplace.analysis.schedule import Schedule
from simplace.analysis.session_memory import MemoryFraction
from simplace.program.program import Program

RELIABLE = 0.9  # of a device's memory: what kernels take besides their outputs is not counted


@dataclass(frozen=True)
class StepMemory:
    """Record of the memory of a simulated step with `batch` examples (0: the program has no batch).

    `uses` have for each device that the step touches what the step needs, and the limit without what `others` names:
    variables of other functions of the run, by device. `largest_batch` is the largest that fits, None where that
    cannot be told. `programs` are the other functions. `grows` says that memory growth is set. `before` has for each
    device whose memory is known as it was before the step what made it so, variables of all functions included; it
    holds for the program's own batch. `fraction` is what a session sets, None where none does, or does not count.
    `asked` is the batch that was asked for, 0 for none: what grows with the batch is not always known.
    """

    schedule: Schedule
    batch: int
    uses: tuple[MemoryUse, ...]
    others: Mapping[str, Part]
    batches: BatchMemory
    largest_batch: int | None
    programs: tuple[Program, ...] = ()
    grows: bool = False
    before: Mapping[str, MemoryBefore] = field(default_factory=dict)
    fraction: MemoryFraction | None = None
    asked: int = 0

    @classmethod
    def of(
        cls,
        schedule: Schedule,
        others: Iterable[Program] = (),
        batch: int = 0,
        *,
        grows: bool = False,
        before: Mapping[str, MemoryBefore] = MappingProxyType({}),
        fraction: MemoryFraction | None = None,
    ) -> Self:
        """Follow the memory of a step; `batch` is another one than the program's, 0 for that."""
        batches, others = BatchMemory.of(schedule), tuple(others)
        devices, taken = schedule.estimated.graph.devices, _sum_others(schedule, others)
        limits = _list_limits(schedule, taken)
        simulated = batch if batch and batches.growing else batches.batch
        if simulated == batches.batch:
            whole = limits | {device: schedule.execution.limits.get(device, 0) for device in before}
            uses = memory_use(schedule.trace, devices, whole, before=before)
        else:
            before = MappingProxyType({})
            uses = memory_use(schedule.trace, devices, limits, choose_sizes(batches, simulated))
        largest = batches.find_largest(limits)
        return cls(schedule, simulated, uses, taken, batches, largest, others, grows, before, fraction, batch)

    @property
    def resize(self) -> Resize:
        """Return the function from a tensor and its bytes in the schedule to its bytes with this batch."""
        return choose_sizes(self.batches, self.batch)

    @cached_property
    def reliable_batch(self) -> int | None:
        """Return the largest batch that leaves a part of each memory free to rely on; None where none is known."""
        if not self.largest_batch:
            return self.largest_batch
        return self.batches.find_largest(_list_limits(self.schedule, self.others, RELIABLE))

    @property
    def has_own_times(self) -> bool:
        """Return whether the schedule is that of a step with this batch."""
        return self.batch == self.batches.batch

    @property
    def fits(self) -> bool:
        """Return whether no device runs out of memory."""
        return all(use.runs_out < 0 for use in self.uses)

    def tensors(self, use: MemoryUse) -> int:
        """Return the most bytes of tensors at once on a device, with the variables of other functions."""
        return use.peak + self.others[use.device].size

    def needed(self, use: MemoryUse) -> int:
        """Return the smallest limit that the step runs in: with variables of other functions, and what is not used."""
        return self._smallest_limits[use.device]

    def limit(self, use: MemoryUse) -> int:
        """Return the bytes that TensorFlow has on a device, 0 where nothing limits it."""
        return use.limit + self._apart(use.device) if use.limit else 0

    def is_close(self, use: MemoryUse) -> bool:
        """Return whether a device has too little left to rely on: not all that kernels take is counted."""
        limit = self.limit(use)
        return self.needed(use) > RELIABLE * limit

    def find_needed(self, use: MemoryUse, resize: Resize) -> int:
        """Return the smallest limit if each tensor of the step had the bytes that `resize` returns."""
        replay = replay_step(self.schedule.trace, use.device, resize)
        return replay.find_smallest_limit(use.limit) + self.others[use.device].size

    @cached_property
    def _smallest_limits(self) -> dict[str, int]:
        return {
            use.device: replay_step(
                self.schedule.trace, use.device, self.resize, self.before.get(use.device, AT_ONCE)
            ).find_smallest_limit(use.limit)
            + self._apart(use.device)
            for use in self.uses
        }

    def _apart(self, device: str) -> int:
        """Return the bytes of what the replay does not know of."""
        return 0 if device in self.before else self.others[device].size


def list_uses(schedule: Schedule, others: Iterable[Program] = (), share: float = 1.0) -> tuple[MemoryUse, ...]:
    """Return the `uses` of a `StepMemory` for the program's own batch, without a search for the largest one.

    A step may use that share of the memory that there is.
    """
    limits = _list_limits(schedule, _sum_others(schedule, tuple(others)), share)
    return memory_use(schedule.trace, tuple(limits), limits)


def choose_sizes(batches: BatchMemory, batch: int) -> Resize:
    """Return the function from a tensor and its bytes to its bytes with a batch."""
    return keep_size if batch == batches.batch else partial(batches.resize, batch)


def _sum_others(schedule: Schedule, others: Sequence[Program]) -> dict[str, Part]:
    """Sum up the variables of other functions on each device that the step touches."""
    program = schedule.placement.program
    return {device: sum_other_variables(program, others, device) for device in schedule.estimated.graph.devices}


def _list_limits(schedule: Schedule, taken: Mapping[str, Part], share: float = 1.0) -> dict[str, int]:
    """Return the bytes that are left to a step on each device that it touches, 0 where nothing limits them.

    It may use that share of the memory that there is.
    """
    limits = {device: int(share * limit) for device, limit in schedule.execution.limits.items()}
    return {device: max(limits[device] - part.size, 1) if limits.get(device) else 0 for device, part in taken.items()}
