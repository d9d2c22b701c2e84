"""Run random programs, batch by batch, and count how many agree."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from simplace.agreement import runner
from simplace.agreement.generator import generate
from simplace.agreement.runner import Batch, Outcome
from simplace.kernels.table import KernelTable
from simplace.oracle.machine import Machine

MACHINES = (
    Machine(cpus=1, gpus=0), Machine(cpus=1, gpus=1), Machine(cpus=1, gpus=2), Machine(cpus=1, gpus=8),
    Machine(cpus=2, gpus=0), Machine(cpus=2, gpus=2), Machine(cpus=1, gpus=11),
)  # fmt: skip
_TIMES = 16
_COPY = re.compile(r"\bp\d+(?=[_/])")


@dataclass(slots=True)
class Count:
    """Count what random programs came to; `in_a_row` counts the programs since the last one that differed.

    A program counts once TensorFlow has placed, or refused, one of its graphs at least. `by_chance` counts those that
    TensorFlow does not place alike itself when it is asked again: it walks a hash set of addresses.
    """

    programs: int = 0
    placements: int = 0
    nodes: int = 0
    refused: int = 0
    failed_later: int = 0
    differing: int = 0
    in_a_row: int = 0
    not_placed: int = 0
    by_chance: int = 0
    ends: list[str] = field(default_factory=list)

    def add(self, names: list[str], batch: Batch, chance: frozenset[str] = frozenset()) -> list[str]:
        """Count a batch; return the names of the programs that differ, without those that differ by `chance`."""
        by_program: dict[str, list[Outcome]] = {name: [] for name in names}
        for outcome in batch.outcomes:  # one without a name of ours would be an eager op's
            by_program.setdefault(outcome.program, []).append(outcome)
        if batch.ended:
            self.ends.append(batch.ended)
        return [name for name, outcomes in by_program.items() if self._add_one(name, outcomes, batch, chance)]

    def _add_one(self, name: str, outcomes: list[Outcome], batch: Batch, chance: frozenset[str]) -> bool:
        if name in chance:
            self.by_chance += 1
            return False
        if not outcomes:
            self.not_placed += name not in batch.unreached
            return False
        self.programs += 1
        self.placements += len(outcomes)
        self.nodes += sum(outcome.nodes for outcome in outcomes)
        self.refused += sum(outcome.refused for outcome in outcomes)
        self.failed_later += sum(outcome.failed_later for outcome in outcomes)
        differs = any(outcome.differences for outcome in outcomes)
        self.differing += differs
        self.in_a_row = 0 if differs else self.in_a_row + 1
        return differs

    def __str__(self) -> str:
        return (
            f"{self.programs} programs, {self.placements} placements ({self.refused} refused by TensorFlow), "
            f"{self.nodes} nodes: {self.differing} programs differ, {self.in_a_row} agree in a row; "
            f"{self.failed_later} placements failed after placing, {self.not_placed} programs placed nothing, "
            f"{self.by_chance} are placed otherwise by TensorFlow itself each time, {len(self.ends)} ended its process"
        )


@dataclass(frozen=True, slots=True)
class Round:
    """Hold one batch of a campaign: the seeds of its programs, its machine, and the sources that differ by name."""

    first_seed: int
    machine: Machine
    batch: Batch
    differing: dict[str, str]


def rounds(seed: int, programs: int, size: int, count: Count, machine: Machine | None = None) -> Iterator[Round]:
    """Run the programs of the seeds from `seed` on, `size` in a process; add them up in `count`.

    The machine of a batch is drawn by its first seed where none is given, so one seed means one program anywhere.
    """
    table = KernelTable.shipped()
    for first in range(seed, seed + programs, size):
        chosen = machine or random.Random(first).choice(MACHINES)
        seeds = range(first, min(first + size, seed + programs))
        sources = {f"p{one}": generate(one, table, chosen.gpus, chosen.cpus) for one in seeds}
        while sources:
            batch = runner.run(sources, chosen)
            chance = _by_chance(sources, batch, chosen)
            differing = count.add([name for name in sources if name not in batch.unreached], batch, chance)
            yield Round(first, chosen, batch, {name: sources.get(name, "") for name in differing})
            sources = {name: sources[name] for name in batch.unreached[1:]}  # the first of them ended the process


def _by_chance(sources: dict[str, str], batch: Batch, machine: Machine) -> frozenset[str]:
    """Name the programs each of whose differences goes away when TensorFlow is asked again."""
    suspects = dict.fromkeys(outcome.program for outcome in batch.outcomes if outcome.differences)
    return frozenset(name for name in suspects if name in sources and _changes_its_mind(sources[name], machine))


def _changes_its_mind(source: str, machine: Machine) -> bool:
    again = runner.run({f"p{i}": source for i in range(_TIMES)}, machine)
    by_copy: dict[str, set[str]] = {outcome.program: set() for outcome in again.outcomes}
    for outcome in again.outcomes:
        by_copy[outcome.program].update(_COPY.sub("", line) for line in outcome.differences)
    return bool(by_copy) and not set.intersection(*by_copy.values())
