"""What was compared with one TensorFlow version: a cell per script, column and program, kept as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass, field
from pathlib import Path

from tests.agreement.runner import Outcome

CALLED, EAGER = "functions of datasets and calls", "eager ops"  # rows beside those of the programs


@dataclass(slots=True)
class Cell:
    """Count the nodes of all placements of one program in one column, and the copies between devices.

    The cell of eager ops counts those, by kind, as one placement.
    """

    same: int = 0
    total: int = 0
    placements: int = 0
    refused: int = 0
    differing: int = 0
    copies_same: int = 0
    copies: int = 0

    def add(self, outcome: Outcome) -> None:
        """Add a placement."""
        self.same += outcome.same
        self.total += outcome.nodes
        self.placements += 1
        self.refused += outcome.refused
        self.differing += bool(outcome.differences)
        self.copies_same += outcome.copies_same
        self.copies += outcome.copies

    def __str__(self) -> str:
        """Write the cell.

        >>> str(Cell(12, 12, 2, 1)), str(Cell(11, 12, 1, 0, 1))
        ('12/12 r', '**11/12**')
        """
        text = f"{self.same}/{self.total}" + (" r" if self.refused else "")
        return f"**{text}**" if self.differing else text


@dataclass(frozen=True, slots=True)
class Run:
    """Record of what one run of a script in one column came to.

    `digest` is that of the script's text, `seconds` what the run took, `end` the last line of what ended it early, ""
    where it ran to its end. `cells` are by program, in the order of their first placement.
    """

    date: str
    digest: str
    seconds: float
    end: str = ""
    cells: Mapping[str, Cell] = field(default_factory=dict)


@dataclass(slots=True)
class Record:
    """Record of the runs with one TensorFlow version, by script and by the name of the column."""

    tensorflow: str
    runs: dict[str, dict[str, Run]] = field(default_factory=dict)

    def all_runs(self) -> list[Run]:
        """List all runs."""
        return [run for runs in self.runs.values() for run in runs.values()]

    def cells(self, counts: Callable[[str], bool] = lambda _: True) -> list[Cell]:
        """List the cells of the rows that count: all of them."""
        return [cell for run in self.all_runs() for row, cell in run.cells.items() if counts(row)]

    def keep(self, scripts: Mapping[str, list[str]]) -> None:
        """Forget what is not of these scripts and their columns, and put the rest in their order."""
        kept = {
            script: [name for name in names if name in self.runs.get(script, {})] for script, names in scripts.items()
        }
        self.runs = {
            script: {name: self.runs[script][name] for name in names} for script, names in kept.items() if names
        }


def load(path: Path, tensorflow: str) -> Record:
    """Read a record, an empty one where there is no file."""
    if not path.exists():
        return Record(tensorflow)
    content = json.loads(path.read_text(encoding="utf-8"))
    return Record(
        content["tensorflow"],
        {script: {name: _run(run) for name, run in runs.items()} for script, runs in content["runs"].items()},
    )


def save(path: Path, record: Record) -> None:
    """Write a record, a line per run; a cell is the list of its counts, zeros at the end left out."""
    scripts = []
    for script, runs in record.runs.items():
        lines = [f"   {json.dumps(name)}: {json.dumps(_plain(run))}" for name, run in runs.items()]
        scripts.append(f"  {json.dumps(script)}: {{\n" + ",\n".join(lines) + "\n  }")
    text = f'{{\n "tensorflow": {json.dumps(record.tensorflow)},\n "runs": {{\n' + ",\n".join(scripts) + "\n }\n}\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _plain(run: Run) -> dict[str, object]:
    cells = {program: _counts(cell) for program, cell in run.cells.items()}
    return {"date": run.date, "digest": run.digest, "seconds": run.seconds, "end": run.end, "cells": cells}


def _counts(cell: Cell) -> list[int]:
    counts = list(astuple(cell))
    while counts and not counts[-1]:
        counts.pop()
    return counts


def _run(content: Mapping[str, object]) -> Run:
    fields = dict(content)
    cells = fields.pop("cells")
    assert isinstance(cells, dict), "a run's cells are a JSON object"
    return Run(**fields, cells={program: Cell(*counts) for program, counts in cells.items()})  # type: ignore[arg-type]
