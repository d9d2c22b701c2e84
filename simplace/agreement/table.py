"""Compare every program of the corpus and every sample on every machine, and write the table of it."""

from __future__ import annotations

import datetime
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from simplace.agreement import runner
from simplace.agreement.runner import Outcome
from simplace.devices import DeviceSet, device
from simplace.errors import TargetError
from simplace.kernels.table import KernelTable
from simplace.oracle.machine import Machine
from simplace.oracle.messages import Options
from simplace.oracle.observation import Observation, ObservedProgram
from simplace.oracle.oracle import observe

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "agreement.md"
RANDOM = ROOT / "docs" / "agreement-random.json"
GPUS = (0, 1, 2, 8)
COLUMNS = tuple((gpus, soft) for gpus in GPUS for soft in (True, False))

Cells = dict[tuple[int, bool], "Cell"]


@dataclass(slots=True)
class Cell:
    """Count the nodes of all placements of one row on one machine."""

    same: int = 0
    total: int = 0
    placements: int = 0
    refused: int = 0
    differing: int = 0

    def add(self, outcome: Outcome) -> None:
        """Add a placement."""
        self.same += outcome.same
        self.total += outcome.nodes
        self.placements += 1
        self.refused += outcome.refused
        self.differing += bool(outcome.differences)

    def __str__(self) -> str:
        """Write the cell.

        >>> str(Cell(12, 12, 2, 1)), str(Cell(11, 12, 1, 0, 1))
        ('12/12 r', '**11/12**')
        """
        text = f"{self.same}/{self.total}" + (" r" if self.refused else "")
        return f"**{text}**" if self.differing else text


@dataclass(slots=True)
class Table:
    """Hold the cells by script and program, with what ended a script early."""

    tensorflow: str = ""
    rows: dict[tuple[str, str], Cells] = field(default_factory=dict)
    ends: list[str] = field(default_factory=list)

    def differing(self) -> int:
        """Count the cells in which anything differs."""
        return sum(bool(cell.differing) for cells in self.rows.values() for cell in cells.values())


def scripts() -> list[Path]:
    """List the programs of the table: samples, then the corpus; raise `TargetError` outside of a repository."""
    found = [*sorted((ROOT / "samples").glob("*.py")), *sorted((ROOT / "tests/agreement/corpus").glob("*.py"))]
    if not found:
        raise TargetError(f"{ROOT}: no samples and no corpus here; run this command in simplace's repository")
    return found


def write(only: str = "") -> int:
    """Fill the table and write docs/agreement.md, or print it where `only` narrows it; 1 if anything differs."""
    table = Table()
    for path in scripts():
        if only in path.stem:
            for gpus, soft in COLUMNS:
                fill(table, path, gpus, soft)
            print(f"{path.stem}: {sum(len(c) for (s, _), c in table.rows.items() if s == path.stem)} cells", flush=True)
    text = render(table, datetime.date.today())
    if only:
        print(text)
    else:
        DOCUMENT.write_text(text, encoding="utf-8")
    return 1 if table.differing() else 0


def fill(table: Table, path: Path, gpus: int, soft: bool) -> None:
    """Run one script on one machine and add up what its programs came to."""
    options = Options(max_calls=200, time_limit=1500.0, soft_placement=None if soft else False)
    with open(os.devnull, "w") as nowhere:
        observation = observe(path, (), Machine(cpus=1, gpus=gpus), options, nowhere.fileno())
    table.tensorflow = observation.tensorflow
    if observation.failure is not None:
        where = f"{gpus} GPUs, {_word(soft)}"
        table.ends.append(f"{path.stem} ({where}): {observation.failure.text.splitlines()[-1]}")
    for observed, outcome in zip(observation.programs, _outcomes(observation), strict=True):
        row = (path.stem, "" if path.parent.name == "samples" else _row(observed))
        table.rows.setdefault(row, {}).setdefault((gpus, soft), Cell()).add(outcome)


def render(table: Table, date: datetime.date) -> str:
    """Write the table as Markdown."""
    placements = sum(cell.placements for cells in table.rows.values() for cell in cells.values())
    nodes = sum(cell.total for cells in table.rows.values() for cell in cells.values())
    lines = [
        "# Agreement with TensorFlow",
        "",
        f"simplace and TensorFlow {table.tensorflow} place every program below on emulated machines; "
        f"{date.isoformat()}, {placements} placements, {nodes} nodes, {table.differing()} cells with a difference.",
        "Written by `python -m simplace.agreement`.",
        "",
        "A cell counts the nodes that both place alike, out of all that either places. **Bold**: something differs. "
        "r: TensorFlow refused a placement, and simplace refused it with the same status and the same message; then "
        "only the nodes that were placed before count. Empty: the program does not place that graph on that machine. "
        "Each machine has one CPU; soft and hard are soft placement on and off.",
        "",
        *_random_lines(),
        "## Programs",
        "",
        "| script | program | " + " | ".join(f"{gpus} GPU {_word(soft)}" for gpus, soft in COLUMNS) + " |",
        "|---|---|" + "---|" * len(COLUMNS),
        *(_line(row, cells) for row, cells in table.rows.items()),
        "",
        "## Not compared",
        "",
        *(f"- {line}" for line in (*_CAUSES, *table.ends)),
    ]
    return "\n".join(lines) + "\n"


_CAUSES = (
    'A node with more than eight edges, where TensorFlow takes "the first" of them: it keeps them in a hash set of '
    "addresses, so its own choice changes from run to run (graph/edgeset.h). Seen for the IdentityN that stays behind "
    "for a lowered loop or branch, where lists of strings and of numbers meet. A random program counts as such only if "
    "TensorFlow, asked 16 times, places each of its nodes as simplace does at least once.",
    "What the runtime places later, when it runs: the functions of tf.data pipelines, calls that are not inlined in a "
    "session, and what XLA compiles.",
    "Ops that end TensorFlow's process while the graph is built (a check in the op's shape function), and the rare "
    "program on which it hangs: there is no placement.",
    "A graph that Python changes after the session has it, such as the gradient of a call made between two runs: "
    'TensorFlow refuses the new graph before it places it ("Connecting to invalid output").',
    "Frames made by hand of the raw ops Enter, Exit, NextIteration and LoopCond: random ones are no valid loop, so the "
    "random programs make loops with tf.while_loop (both versions), map_fn and scan only.",
    "Failures after placement, such as inputs from different frames: the placement is compared, the failure is not.",
    "The order of hash maps in messages (node attributes, kernels, op types, possible devices), and the numbers "
    "TensorFlow gives to device names.",
)


def _random_lines() -> Iterator[str]:
    if not RANDOM.exists():
        return
    yield "## Random programs"
    yield ""
    yield "`python -m simplace.agreement random --record` ran these, seeds in a row from the first one:"
    yield ""
    yield "| date | first seed | programs | placements | refused | nodes | differ | by chance | ended TensorFlow |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for one in json.loads(RANDOM.read_text(encoding="utf-8")):
        keys = ("date", "seed", "programs", "placements", "refused", "nodes", "differing", "by_chance", "ended")
        yield "| " + " | ".join(str(one[key]) for key in keys) + " |"
    yield ""


def _line(row: tuple[str, str], cells: Cells) -> str:
    script, program = row
    return f"| {script} | {program} | " + " | ".join(str(cells.get(column, "")) for column in COLUMNS) + " |"


def _outcomes(observation: Observation) -> Iterator[Outcome]:
    kernels = KernelTable.load(observation.registry) if observation.registry else KernelTable.shipped()
    devices = DeviceSet(device(each.name) for each in observation.devices)
    return (runner.outcome_of(observed, devices, kernels) for observed in observation.programs)


def _row(observed: ObservedProgram) -> str:
    """Name a row: a function by its Python name, a session's graph by its first name scope."""
    if observed.program.function is not None or not observed.program.graph.nodes:
        return observed.program.name
    return observed.program.graph.nodes[0].name.split("/")[0]


def _word(soft: bool) -> str:
    return "soft" if soft else "hard"
