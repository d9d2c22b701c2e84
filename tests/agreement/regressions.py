"""Keep a program that differed once: its source, and the machine on which it is compared ever after."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from simplace.errors import TargetError
from simplace.machine.machine import Machine

_DEVICES = re.compile(r"^# devices: cpu:(\d+),gpu:(\d+)$", re.MULTILINE)
_PROGRAM = re.compile(r"^def program\(.*", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Case:
    """Record of the source of a function `program(name)`, as the generator writes it, and its machine."""

    source: str
    machine: Machine


def write(path: Path, case: Case, why: str = "") -> None:
    """Write a case; its first line says what it shows. The prelude is added when it runs."""
    machine = f"# ruff: noqa\n# devices: cpu:{case.machine.cpus},gpu:{case.machine.gpus}"
    path.write_text(f'"""{why or "A generated program."}"""\n\n{machine}\n\n\n{case.source}', encoding="utf-8")


def read(path: Path) -> Case:
    """Read a case; raise `TargetError` for a file that names no machine or holds no program."""
    text = path.read_text(encoding="utf-8")
    devices, program = _DEVICES.search(text), _PROGRAM.search(text)
    if devices is None:
        raise TargetError(f"{path}: says nowhere on which devices it is to be placed, as in `# devices: cpu:1,gpu:2`")
    if program is None:
        raise TargetError(f"{path}: holds no program; begin it with `def program(name):`")
    return Case(program[0], Machine(cpus=int(devices[1]), gpus=int(devices[2])))
