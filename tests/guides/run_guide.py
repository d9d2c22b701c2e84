"""One converted notebook run twice: as plain Python without any GPU, and under simplace on emulated ones."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

from simplace.api import Settings, place
from simplace.errors import SimplaceError
from simplace.machine.machine import Machine
from simplace.views.text.summary import agreement_line
from tests.guides.compare_output import differing_lines

_ENDED = re.compile(r"^cell \d+ ended with", re.MULTILINE)
_QUIET = {"CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3"}


@dataclass(frozen=True, slots=True)
class PlainRun:
    """Record of a run without simplace."""

    status: int
    output: str
    seconds: float


@dataclass(frozen=True, slots=True)
class GuideRun:
    """Record of a run under simplace beside a plain one.

    `verdict` is the last line that `show` prints, `failure` what it prints on failure; `differing` are lines of the
    output in pairs, the plain one first. `ended_cells` is the number of cells that ended with an exception,
    `tensorflow` the version that ran it.
    """

    gpus: int
    seconds: float
    programs: int
    agrees: bool
    verdict: str
    failure: str
    differing: tuple[tuple[str, str], ...]
    ended_cells: int = 0
    tensorflow: str = ""

    @property
    def is_alike(self) -> bool:
        """Return whether the program ran as it does without simplace, and TensorFlow places it as simplace does."""
        return self.agrees and not self.failure and not self.differing


def run_plainly(script: Path, gpus: int, seconds: float) -> PlainRun:
    """Run a script as Python does; `gpus` is the number of GPUs that the other run has."""
    cpus = {"GUIDES_CPUS": str(gpus)} if gpus else {}
    began = time.monotonic()
    command = [sys.executable, script.name]
    environment = {**os.environ, **_QUIET, **cpus}
    try:
        done = subprocess.run(
            command, cwd=script.parent, env=environment, timeout=seconds, stdout=subprocess.PIPE, check=False
        )
        status, output = done.returncode, done.stdout.decode(errors="replace")
    except subprocess.TimeoutExpired as late:
        status, output = 124, (late.stdout or b"").decode(errors="replace")
    script.with_suffix(".txt").write_text(output)
    return PlainRun(status, output, time.monotonic() - began)


def run_observed(script: Path, gpus: int, seconds: float, plain: PlainRun) -> GuideRun:
    """Run a script under simplace and compare with the plain run."""
    printed = script.with_suffix(".txt")
    began = time.monotonic()
    before = Path.cwd()
    os.chdir(script.parent)
    programs, agrees, verdict, failure = 0, True, "", ""
    try:
        with printed.open("wb") as out:
            settings = Settings(Machine(gpus=gpus), calls=-1, timeout=seconds, stdout=out.fileno())
            result = place(script.name, settings)
        failed = result.failure
        programs, verdict = len(result.programs), agreement_line(result)
        failure = str(failed) if failed and plain.status == 0 else ""
        agrees = verdict.startswith("agrees")
    except SimplaceError as error:
        failure = "" if "nothing can be placed" in str(error) else str(error)
        verdict = "no function is called" if not failure else ""
    finally:
        os.chdir(before)
    output = printed.read_bytes().decode(errors="replace")
    differing, ended = tuple(differing_lines(plain.output, output)), len(_ENDED.findall(output))
    took = time.monotonic() - began
    return GuideRun(gpus, took, programs, agrees, verdict, failure, differing, ended, version("tensorflow"))


def without_chance(run: GuideRun, plain: PlainRun, again: PlainRun) -> GuideRun:
    """Return a run without the differing lines that differ between two plain runs, too."""
    by_chance = {one for one, _ in differing_lines(plain.output, again.output)}
    return replace(run, differing=tuple(pair for pair in run.differing if pair[0] not in by_chance))
