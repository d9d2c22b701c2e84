"""The programs: each file below `cases` has many, each under a line `#%% name | truth | rule`.

`rule` is what the doctor calls the failure, or "sound"; several are separated by commas where either may be told.
`truth` says where TensorFlow's own outcome is had: on two logical CPUs ("cpus"), where `FIRST` and `SECOND` are those,
or on two emulated GPUs ("gpus"). `AUTO` is what Keras's `jit_compile="auto"` amounts to on a GPU.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

FOLDER = Path(__file__).parent / "cases"
Truth = Literal["cpus", "gpus"]


@dataclass(frozen=True, slots=True)
class Case:
    """Record of a program: `rules` are what may be predicted, () where it is sound."""

    name: str
    truth: Truth
    rules: tuple[str, ...]
    text: str


def read_cases() -> list[Case]:
    """Return all programs, in the order of the files and in them."""
    return [case for path in sorted(FOLDER.glob("*.txt")) for case in _read_file(path)]


def _read_file(path: Path) -> list[Case]:
    found = []
    for cell in path.read_text(encoding="utf-8").split("#%% ")[1:]:
        head, _, text = cell.partition("\n")
        name, truth, rules = (part.strip() for part in head.split("|"))
        assert truth in ("cpus", "gpus"), f"{path.name}: {head}"
        told = () if rules == "sound" else tuple(rule.strip() for rule in rules.split(","))
        found.append(Case(f"{path.stem}/{name}", truth, told, text.strip() + "\n"))
    return found
