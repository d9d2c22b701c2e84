"""Compare every program of the corpus and every sample on every machine, and write the pages of it.

A script is compared on the machines of `COLUMNS`, unless one of its lines names other ones, in the words of
`--devices`: `# machines: cpu:1,gpu:1; cpu:2`.
"""

from __future__ import annotations

import datetime
import hashlib
import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from simplace.devices.device_set import seen_from_the_first
from simplace.errors import TargetError
from simplace.kernels.installed import installed_version
from simplace.kernels.registry import KernelTable
from simplace.kernels.table_file import version_key
from simplace.machine.machine import TWO_TASKS, Machine
from simplace.machine.machine_file import parse_machine
from simplace.oracle.launch import Forks, Start
from simplace.oracle.observe import observe_script
from simplace.oracle.protocol import Options
from simplace.program.observation import Observation, ObservedProgram
from tests.agreement import document, runner
from tests.agreement import record as records
from tests.agreement.record import CALLED, EAGER, Cell, Record, Run
from tests.agreement.runner import Outcome

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "agreement.md"
FOLDER = ROOT / "docs" / "agreement"
RANDOM = ROOT / "docs" / "agreement-random.json"
FAILURES = ROOT / "docs" / "agreement-failures.json"
_SHOWN = 2  # differences a placement
_MACHINES = re.compile(r"^# machines: (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Column:
    """Describe a column of the table; `soft` False turns soft placement off, True leaves it to the program."""

    name: str
    machine: Machine
    soft: bool


def both(name: str, machine: Machine) -> tuple[Column, Column]:
    """Make the columns of one machine: soft placement on, then off."""
    return Column(f"{name} soft", machine, True), Column(f"{name} hard", machine, False)


COLUMNS = tuple(column for gpus in (0, 1, 2, 8) for column in both(f"{gpus} GPU", Machine(cpus=1, gpus=gpus))) + both(
    "2 tasks", TWO_TASKS
)


@dataclass(frozen=True, slots=True)
class Selection:
    """Record of what to compare: scripts and columns whose names have one of the texts, of these only the stale.

    `jobs` are the runs at a time.
    """

    scripts: tuple[str, ...] = ("",)
    columns: tuple[str, ...] = ("",)
    only_stale: bool = False
    jobs: int = 1


def scripts() -> list[Path]:
    """List the programs of the table: samples, then the corpus; raise `TargetError` outside of a repository."""
    found = [*sorted((ROOT / "samples").glob("*.py")), *sorted((ROOT / "tests/agreement/corpus").glob("*.py"))]
    if not found:
        raise TargetError(f"{ROOT}: no samples and no corpus here; run this command in simplace's repository")
    by_name: dict[str, Path] = {}
    for path in found:  # the record goes by these names
        if by_name.setdefault(path.stem, path) != path:
            raise TargetError(f"{path} has the name of {by_name[path.stem]}; give it another one")
    return found


def columns(path: Path) -> tuple[Column, ...]:
    """List the columns that a script is compared in."""
    named = _MACHINES.search(path.read_text(encoding="utf-8"))
    if named is None:
        return COLUMNS
    texts = [text.strip() for text in named[1].split(";")]
    return tuple(column for text in texts for column in both(text, parse_machine(text, None, {})[0]))


def write(selection: Selection) -> int:
    """Compare what is selected with the installed TensorFlow and write the pages; 1 if anything compared now differs.

    What was compared before stays as it is, and every script is kept as soon as it is done: a run may be ended and
    gone on with.
    """
    version = installed_version()
    if version is None:
        raise TargetError("TensorFlow is not installed in this Python: pip install tensorflow")
    path = FOLDER / f"{version}.json"
    record = records.load(path, version)
    order = {script.stem: [column.name for column in columns(script)] for script in scripts()}
    differing = 0
    with ExitStack() as stack:
        idle: SimpleQueue[Forks] = SimpleQueue()
        for _ in range(selection.jobs):
            idle.put(stack.enter_context(Forks()))
        pool = stack.enter_context(ThreadPoolExecutor(selection.jobs))
        for script in (one for one in scripts() if _holds(one.stem, selection.scripts)):
            done = _compare(script, _list_selected(script, record, selection), record, pool, idle)
            differing += sum(bool(cell.differing) for run in done.values() for cell in run.cells.values())
            if done:
                record.keep(order)
                records.save(path, record)
                print(_told(script.stem, done), flush=True)
    write_pages()
    return 1 if differing else 0


def write_pages() -> None:
    """Write the pages from the records of all versions, newest first."""
    paths = sorted(FOLDER.glob("*.json"), key=lambda path: version_key(path.stem), reverse=True)
    known = [records.load(path, path.stem) for path in paths]
    for record in known:
        (FOLDER / f"{record.tensorflow}.md").write_text(document.version_page(record), encoding="utf-8")
    DOCUMENT.write_text(document.summary_page(known, RANDOM, FAILURES, FOLDER.name), encoding="utf-8")


def run(path: Path, column: Column, start: Start) -> Run:
    """Run one script on one machine and add up what its programs came to."""
    began = time.monotonic()
    options = Options(calls=200, timeout=1500.0, soft_placement=None if column.soft else False, partitions=True)
    with open(os.devnull, "w") as nowhere:
        observation = observe_script(path, (), column.machine, options, nowhere.fileno(), start)
    cells: dict[str, Cell] = {}
    for row, outcome in _outcomes(observation):
        row = "" if path.parent.name == "samples" and row != EAGER else row
        cells.setdefault(row, Cell()).add(outcome)
        for line in outcome.differences[:_SHOWN]:
            print(f"    {path.stem} ({column.name}) {row}: {line[:600]}", flush=True)
    end = observation.failure.text.splitlines()[-1] if observation.failure else ""
    return Run(datetime.date.today().isoformat(), _digest(path), round(time.monotonic() - began, 1), end, cells)


def _list_selected(script: Path, record: Record, selection: Selection) -> list[Column]:
    known = record.runs.get(script.stem, {})
    named = [column for column in columns(script) if _holds(column.name, selection.columns)]
    if not selection.only_stale:
        return named
    digest = _digest(script)
    return [column for column in named if column.name not in known or known[column.name].digest != digest]


def _holds(name: str, texts: Iterable[str]) -> bool:
    return any(text in name for text in texts)


def _compare(
    script: Path, selected: Sequence[Column], record: Record, pool: ThreadPoolExecutor, idle: SimpleQueue[Forks]
) -> dict[str, Run]:
    def compare(column: Column) -> Run:
        start = idle.get()
        try:
            return run(script, column, start)
        finally:
            idle.put(start)

    done = dict(zip((column.name for column in selected), pool.map(compare, selected), strict=True))
    record.runs.setdefault(script.stem, {}).update(done)
    return done


def _told(script: str, done: dict[str, Run]) -> str:
    cells = [cell for run in done.values() for cell in run.cells.values()]
    seconds = sum(run.seconds for run in done.values())
    wrong = sum(bool(cell.differing) for cell in cells)
    return f"{script}: {len(cells)} cells, {sum(cell.total for cell in cells)} nodes, {wrong} differ, {seconds:.0f} s"


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]


def _outcomes(observation: Observation) -> Iterator[tuple[str, Outcome]]:
    """Yield the row and the outcome of each program; what kernels call shares a row."""
    kernels = KernelTable.load(observation.registry) if observation.registry else KernelTable.shipped()
    devices = seen_from_the_first(each.name for each in observation.devices)
    for observed in observation.programs:
        if observed.is_asked:
            yield _row(observed), runner.outcome_of(observed, devices, kernels)
    for outcome in runner.called_outcomes(observation, devices, kernels):
        yield CALLED, outcome
    eager = runner.compare_eager_ops(observation)
    if eager.total:
        refused = eager.refused > 0
        yield EAGER, Outcome(EAGER, EAGER, eager.total, eager.same, eager.differences, refused)


def _row(observed: ObservedProgram) -> str:
    """Name a row: a function by its Python name, a session's graph by its first name scope."""
    if observed.program.function is not None or not observed.program.graph.nodes:
        return observed.program.name
    return observed.program.graph.nodes[0].name.split("/")[0]
