"""One of TensorFlow's files of tests run twice: by `python test.py`, and by `simplace check test.py`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_OUTCOME = re.compile(r"^\[ +(OK|FAILED|SKIPPED) +\] ([\w.]+)", re.MULTILINE)  # as absl's runner writes it
_VERDICT = re.compile(r"^(?:agrees|DISAGREES) with TensorFlow .*(?:\n.+)*", re.MULTILINE)
_COUNT = re.compile(r"(\d+)/(\d+) (nodes|eager ops)")
_NOTHING = "nothing can be placed"  # a file that calls no op
_SETTINGS = {"TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONHASHSEED": "0"}
_HIDDEN = {"CUDA_VISIBLE_DEVICES": ""}  # which would hide emulated GPUs, too
_TIMED_OUT = 124
_SLOWER = 4  # how much longer than the plain run one under simplace may take


@dataclass(frozen=True, slots=True)
class FileRun:
    """Record of a run of a file of tests: its output, and the outcome of each test (OK, FAILED or SKIPPED)."""

    status: int
    seconds: float
    output: str

    @property
    def outcomes(self) -> Mapping[str, str]:
        """Return the outcome of each test by its name."""
        return read_outcomes(self.output)

    @property
    def is_whole(self) -> bool:
        """Return whether the run came to its end, with a test that passed."""
        return self.status != _TIMED_OUT and "OK" in self.outcomes.values()


@dataclass(frozen=True, slots=True)
class Comparison:
    """Record of a file's two runs: how many tests passed, how long the runs took.

    `verdict` is what `check` says of placements, "" where nothing was placed; `worse` are the tests that fail, or are
    not reached, under simplace alone; `failure` is the last line of a `check` that has no verdict.
    """

    passed: int
    observed_passed: int
    plain_seconds: float
    seconds: float
    verdict: str
    worse: tuple[str, ...]
    failure: str = ""

    @property
    def counts(self) -> Mapping[str, tuple[int, int]]:
        """Return how many nodes and eager ops are placed alike, and of how many."""
        return {what: (int(same), int(total)) for same, total, what in _COUNT.findall(self.verdict)}

    @property
    def is_alike(self) -> bool:
        """Return whether TensorFlow places all as simplace does, and no test fails under simplace alone."""
        return not (self.verdict.startswith("DISAGREES") or self.failure or self.worse)


def run_plainly(script: Path, seconds: float) -> FileRun:
    """Run a file of tests by `python`, without any GPU, unless a run of it is kept beside it."""
    kept = script.with_suffix(".plain")
    if not kept.exists():
        run = _run([sys.executable, script.name], script, seconds, _HIDDEN)
        kept.write_text(f"{run.status} {run.seconds:.1f}\n{run.output}")
    first, _, output = kept.read_text().partition("\n")
    status, took = first.split()
    return FileRun(int(status), float(took), output)


def run_observed(script: Path, gpus: int, seconds: float) -> FileRun:
    """Run a file of tests by `simplace check`; `seconds` is the limit of the plain run."""
    limit = seconds * _SLOWER
    options = ["--devices", f"cpu:1,gpu:{gpus}", "--calls", "all", "--timeout", f"{limit:g}"]
    run = _run([sys.executable, "-m", "simplace", "check", script.name, *options], script, limit + 60, {})
    script.with_suffix(".observed").write_text(run.output)
    return run


def compare_runs(plain: FileRun, observed: FileRun) -> Comparison:
    """Compare two runs of a file."""
    before, after = plain.outcomes, observed.outcomes
    failed = {name for name, how in after.items() if how == "FAILED" and before.get(name) != "FAILED"}
    unreached = {name for name, how in before.items() if how == "OK" and name not in after}
    found = _VERDICT.search(observed.output)
    failure = "" if found or _NOTHING in observed.output else observed.output.strip().rpartition("\n")[2]
    return Comparison(
        passed=list(before.values()).count("OK"),
        observed_passed=list(after.values()).count("OK"),
        plain_seconds=plain.seconds,
        seconds=observed.seconds,
        verdict=" ".join(found[0].split("\ncopies:")[0].split()) if found else "",
        worse=tuple(sorted(failed | unreached)),
        failure=failure,
    )


def read_outcomes(output: str) -> Mapping[str, str]:
    """Read the outcome of each test; one with parts, of which some fail, has failed.

    >>> read_outcomes("[ RUN      ] A.b\\n[       OK ] A.b\\n[  FAILED  ] A.c (<x>)\\n[       OK ] A.c\\n")
    {'A.b': 'OK', 'A.c': 'FAILED'}
    """
    outcomes: dict[str, str] = {}
    for how, name in _OUTCOME.findall(output):
        if outcomes.get(name) != "FAILED":
            outcomes[name] = how
    return outcomes


def _run(command: Sequence[str], script: Path, seconds: float, settings: Mapping[str, str]) -> FileRun:
    began = time.monotonic()
    kept = {name: value for name, value in os.environ.items() if name not in _HIDDEN}
    where = {"cwd": script.parent, "env": {**kept, **_SETTINGS, **settings}}
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    try:
        done = subprocess.run(command, timeout=seconds, check=False, **where, **pipes)  # type: ignore[call-overload]
        status, printed = done.returncode, done.stdout
    except subprocess.TimeoutExpired as late:
        status, printed = _TIMED_OUT, late.stdout or b""
    return FileRun(status, time.monotonic() - began, printed.decode(errors="replace"))
