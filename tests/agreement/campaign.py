"""Run random programs, batch by batch, and count how many agree."""

from __future__ import annotations

import datetime
import json
import random
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field
from pathlib import Path

from simplace.kernels.installed import installed_version
from simplace.kernels.registry import KernelTable
from simplace.machine.machine import Machine
from tests.agreement import runner
from tests.agreement.generator import generate, generate_eager
from tests.agreement.runner import Batch, EagerBatch, Outcome

MACHINES = (
    Machine(cpus=1, gpus=0), Machine(cpus=1, gpus=1), Machine(cpus=1, gpus=2), Machine(cpus=1, gpus=8),
    Machine(cpus=2, gpus=0), Machine(cpus=2, gpus=2), Machine(cpus=1, gpus=11),
)  # fmt: skip
_TIMES = (4, 12)  # a second process is only asked about what the first left open
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
    """Record of one batch of a campaign: its programs' seeds, its machine, and the sources that differ by name."""

    first_seed: int
    machine: Machine
    batch: Batch
    differing: dict[str, str]


def rounds(
    seed: int, programs: int, size: int, count: Count, machine: Machine | None = None, jobs: int = 1
) -> Iterator[Round]:
    """Run the programs of the seeds from `seed` on, `size` in a process, `jobs` at once; add them up in `count`.

    Rounds come in the order of their seeds. The machine of a batch is drawn by its first seed where none is given, so
    one seed means one program with any TensorFlow of one version.
    """
    table = KernelTable.shipped(installed_version())
    pool = ThreadPoolExecutor(jobs)  # threads: the work is done in TensorFlow's processes

    def run(first: int) -> list[_Part]:
        chosen = machine or random.Random(first).choice(MACHINES)
        seeds = range(first, min(first + size, seed + programs))
        sources = {f"p{one}": generate(one, table, chosen.gpus, chosen.cpus) for one in seeds}
        return list(_parts(first, sources, chosen))

    try:
        # Each with a copy of the context, which says how processes start: a thread has none of its own.
        firsts = range(seed, seed + programs, size)
        for begun in [pool.submit(copy_context().run, run, first) for first in firsts]:
            for part in begun.result():
                reached = [name for name in part.sources if name not in part.batch.unreached]
                differing = count.add(reached, part.batch, part.chance)
                sources = {name: part.sources.get(name, "") for name in differing}
                yield Round(part.first_seed, part.machine, part.batch, sources)
    finally:
        pool.shutdown(cancel_futures=True)


def eager_rounds(
    seed: int, programs: int, size: int, machine: Machine | None = None
) -> Iterator[tuple[int, Machine, EagerBatch]]:
    """Run the programs of the seeds from `seed` on op by op, `size` in a process; what ends a process is left out."""
    table = KernelTable.shipped(installed_version())
    for first in range(seed, seed + programs, size):
        chosen = machine or random.Random(first).choice(MACHINES)
        seeds = range(first, min(first + size, seed + programs))
        sources = {f"p{one}": generate_eager(one, table, chosen.gpus, chosen.cpus) for one in seeds}
        while sources:
            batch = runner.run_eager(sources, chosen)
            yield first, chosen, batch
            sources = {name: sources[name] for name in batch.unreached[1:]}


@dataclass(frozen=True, slots=True)
class _Part:
    """Record of the programs given to one process, what became of them, and which differ by chance only."""

    first_seed: int
    machine: Machine
    batch: Batch
    sources: dict[str, str]
    chance: frozenset[str]


def _parts(first: int, sources: dict[str, str], machine: Machine) -> Iterator[_Part]:
    """Run programs in one process, and what a program that ends it leaves over in another one."""
    while sources:
        batch = runner.run(sources, machine)
        yield _Part(first, machine, batch, sources, _by_chance(sources, batch, machine))
        sources = {name: sources[name] for name in batch.unreached[1:]}  # the first of them ended the process


def record(path: Path, date: datetime.date, seed: int, count: Count) -> None:
    """Keep the counts of a run in a file of many; the row of a run that goes on is replaced."""
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    row = {
        "date": date.isoformat(), "seed": seed, "programs": count.programs, "placements": count.placements,
        "refused": count.refused, "nodes": count.nodes, "differing": count.differing, "in_a_row": count.in_a_row,
        "by_chance": count.by_chance, "ended": len(count.ends),
    }  # fmt: skip
    rows = [*(one for one in known if one["seed"] != seed), row]
    path.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def _by_chance(sources: dict[str, str], batch: Batch, machine: Machine) -> frozenset[str]:
    """Name the programs each of whose differences goes away when TensorFlow is asked again."""
    open_programs = dict.fromkeys(one.program for one in batch.outcomes if one.differences and one.program in sources)
    told: dict[str, list[set[str]]] = {name: [] for name in open_programs}
    found: set[str] = set()
    for times in _TIMES:
        if left := [name for name in told if name not in found]:
            _ask_again({name: sources[name] for name in left}, times, machine, told)
            found.update(name for name in left if told[name] and not set.intersection(*told[name]))
    return frozenset(found)


def _ask_again(sources: dict[str, str], times: int, machine: Machine, told: dict[str, list[set[str]]]) -> None:
    """Add, by program, the differences of each of so many copies of it."""
    copies = {f"p{i * times + k}": name for i, name in enumerate(sources) for k in range(times)}
    again = runner.run({copy: sources[name] for copy, name in copies.items()}, machine)
    by_copy: dict[str, set[str]] = {outcome.program: set() for outcome in again.outcomes}
    for outcome in again.outcomes:
        by_copy[outcome.program].update(_COPY.sub("", line) for line in outcome.differences)
    for copy, lines in by_copy.items():
        if copy in copies:
            told[copies[copy]].append(lines)
