"""Run the swept program in batches, many names a process; find the name that ends a process, and go on after it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from simplace.machine.machine import Machine
from simplace.oracle.observe import observe_script
from simplace.oracle.protocol import Options
from simplace.program.observation import Observation
from tests.agreement.runner import outcomes

PROGRAM = Path(__file__).with_name("program.py")
NEVER = 1 << 30  # no program is stopped for being called often
_WAITING = "SIGALRM"  # of what has waited for long
_TRIES = 3
_TIME_LIMIT = 600.0  # seconds for one process; a batch takes a twentieth of it on a quiet machine


@dataclass(frozen=True, slots=True)
class Batch:
    """Record of one process; a name some of whose cases are left over is that of a later one.

    `cases` were called, in `programs` that TensorFlow placed, of `nodes`; `differing` has a line for each placement
    that differs. `none` are the names no case of which could be built, each with the reason. `killed` is the case in
    which the process ended, and how, or ""; `alone` says that TensorFlow on the CPU, without simplace, ends there too.
    """

    names: list[str]
    cases: int
    programs: int
    nodes: int
    differing: list[str]
    none: dict[str, str]
    killed: str = ""
    alone: bool = False


def run(kind: str, names: Sequence[str], machine: Machine) -> list[Batch]:
    """Sweep names in one process, and what one that ends it leaves over in another: its other cases, other names.

    Of one that waits without an end, no other case is tried.
    """
    found: list[Batch] = []
    left, skipped = list(names), []
    while left:
        batch, name, last = _run(kind, left, skipped, machine)
        alone = bool(batch.killed) and _dies_alone(kind, name, skipped)
        found.append(replace(batch, alone=alone))
        left, skipped = left[len(batch.names) :], [*skipped, *last]
    return found


def _run(kind: str, names: list[str], skipped: list[str], machine: Machine) -> tuple[Batch, str, list[str]]:
    """Sweep names in one process; return also the name that it began last (else the first) and that name's cases."""
    with tempfile.TemporaryDirectory(prefix="sweep-") as folder:
        progress = Path(folder, "progress.txt")
        progress.touch()
        options = Options(calls=NEVER, timeout=_TIME_LIMIT)
        arguments = (str(progress), kind, ",".join(skipped), *names)
        with Path(os.devnull).open("w") as nowhere:
            observed = observe_script(PROGRAM, arguments, machine, options, nowhere.fileno())
        words = [line.split(" ", 2) for line in progress.read_text(encoding="utf-8").splitlines()]
    begun = [number for number, each in enumerate(words) if each[0] == "begin"]
    last = [each[1] for each in words[begun[-1] :] if each[0] == "case"] if begun else []
    return _batch(names, observed, words, last), words[begun[-1]][1] if begun else names[0], last


def _dies_alone(kind: str, name: str, skipped: list[str]) -> bool:
    """Return whether the swept program is killed for a name by TensorFlow itself, on a machine without GPUs.

    A kernel that reads what nobody has written dies at most tries, not at each.
    """
    plain = [sys.executable, str(PROGRAM), os.devnull, kind, ",".join(skipped), name]
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "-1"}
    return any(_is_killed(plain, environment) for _ in range(_TRIES))


def _is_killed(words: list[str], environment: dict[str, str]) -> bool:
    try:
        done = subprocess.run(words, env=environment, capture_output=True, check=False, timeout=_TIME_LIMIT)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode < 0


def _batch(names: list[str], observed: Observation, words: list[list[str]], last: list[str]) -> Batch:
    begun = [each[1] for each in words if each[0] == "begin"]
    cases = [each[1] for each in words if each[0] == "case"]
    is_whole = bool(words) and words[-1][0] in ("end", "none") and len(begun) == len(names)
    is_killed = not is_whole or observed.failure is not None
    how = observed.failure.text.splitlines()[0] if observed.failure else "it ended without a word"
    found = outcomes(observed)
    return Batch(
        names[: len(begun) - 1 if is_killed and last and _WAITING not in how else max(1, len(begun))],
        len(cases),
        len(found),
        sum(each.nodes for each in found),
        [f"{each.name}: {each.differences[0]}" for each in found if each.differences],
        {each[1]: each[2] if len(each) > 2 else "" for each in words if each[0] == "none"},
        f"{cases[-1] if last else names[:1]}: {how}" if is_killed else "",
    )
