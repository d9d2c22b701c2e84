"""Keep a program that differed once: as a script that runs alone and is compared ever after."""

from __future__ import annotations

import re
from pathlib import Path

from simplace.agreement.prelude import script
from simplace.errors import TargetError
from simplace.oracle.machine import Machine

_DEVICES = re.compile(r"^# devices: cpu:(\d+),gpu:(\d+)$", re.MULTILINE)


def write(path: Path, source: str, machine: Machine, why: str = "") -> None:
    """Write a program as a script; its first lines say what it shows and which devices it needs."""
    head = (
        f'"""{why or "A generated program."}"""\n\n# ruff: noqa\n# devices: cpu:{machine.cpus},gpu:{machine.gpus}\n\n'
    )
    path.write_text(head + script({"p0": source}), encoding="utf-8")


def machine_of(path: Path) -> Machine:
    """Read which devices a case needs; raise `TargetError` for a script that does not say."""
    found = _DEVICES.search(path.read_text(encoding="utf-8"))
    if found is None:
        raise TargetError(f"{path}: says nowhere on which devices it is to be placed, as in `# devices: cpu:1,gpu:2`")
    return Machine(cpus=int(found[1]), gpus=int(found[2]))
