"""Add up what a sweep found, for docs/reliability.md."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FILE = Path(__file__).parents[2] / "docs" / "reliability-ops.json"
_NAMES = {"ops": "ops with a GPU kernel", "surface": "functions of `tf.*`"}


@dataclass(slots=True)
class Row:
    """Count what was swept on one machine."""

    kind: str
    gpus: int
    names: int = 0
    built: int = 0
    cases: int = 0
    placements: int = 0
    nodes: int = 0
    differing: int = 0
    killed: int = 0
    alone: int = 0


@dataclass(slots=True)
class Figures:
    """Count what was swept with one TensorFlow; `none` are the names that could not be built, with the reason."""

    tensorflow: str
    rows: list[Row] = field(default_factory=list)
    none: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, batches: Iterable[Mapping[str, Any]], tensorflow: str) -> Figures:
        """Add up the batches of a state file."""
        rows: dict[tuple[str, int], Row] = {}
        none: dict[str, str] = {}
        for batch in batches:
            key = batch["kind"], batch["gpus"]
            row = rows.setdefault(key, Row(*key))
            row.names += len(batch["names"])
            row.built += len(batch["names"]) - len(batch["none"])
            row.cases += batch["cases"]
            row.placements += batch["programs"]
            row.nodes += batch["nodes"]
            row.differing += len(batch["differing"])
            row.killed += bool(batch["killed"]) and not batch["alone"]
            row.alone += batch["alone"]
            none |= batch["none"]
        return cls(tensorflow, sorted(rows.values(), key=lambda row: (row.kind, row.gpus)), dict(sorted(none.items())))

    @property
    def are_clean(self) -> bool:
        """Return whether no process was killed and no node differs."""
        return not any(row.killed or row.differing for row in self.rows)

    def table(self) -> str:
        """Return the table of docs/reliability.md."""
        heads = ("swept", "GPUs", "names", "built", "calls", "placements", "nodes", "placements that differ", "killed",
                 "killed without simplace too")  # fmt: skip
        lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
        for row in self.rows:
            counts = (row.names, row.built, row.cases, row.placements, row.nodes, row.differing, row.killed, row.alone)
            lines.append(f"| {_NAMES[row.kind]} | {row.gpus} | {' | '.join(f'{count:,}' for count in counts)} |")
        return "\n".join(lines)


def read(path: Path) -> Figures:
    """Read the figures of the last sweep."""
    content = json.loads(path.read_text(encoding="utf-8"))
    return Figures(content["tensorflow"], [Row(**row) for row in content["rows"]], content["none"])
