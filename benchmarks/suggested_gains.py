"""Measure the gains that `simplace suggest` promises for programs on this computer's CPU.

Run: python benchmarks/suggested_gains.py [--steps N] [--rounds N] [PROGRAM ...]. Each program is searched for
suggestions, each suggestion's patch is applied to a copy, and the program runs for real as it was and as it is now, in
processes that take turns. A step counts if the process's threads did not wait for a core meanwhile; where there are few
such steps, nothing is said. A quiet computer is worth much.
"""

from __future__ import annotations

import argparse
import json
import os
import runpy
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from simplace import api
from simplace.executor.step_options import StepOptions
from simplace.suggestions.suggestion_sentences import describe_change
from simplace.suggestions.trial import Trial

PROGRAMS = Path(__file__).with_name("programs") / "threads"
_WARM_UP = 60  # steps: by then the executor knows the cost of each op
_QUIET = 0.02  # of a step: where its threads waited longer than that for a core, something else disturbed it
_LEAST = 10  # steps


def main() -> None:
    """Print a table, or with --time the times of one program's steps as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help="names of programs (default: all)")
    parser.add_argument("--steps", type=int, default=1000, help="steps of a process (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="processes of each kind (default: %(default)s)")
    parser.add_argument("--time", metavar="FILE", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.time:
        print(json.dumps(list(_time_steps(options.time, options.steps))))
        return
    print("| program | suggestion | promised | measured | difference in points | steps that count |")
    print("| --- | --- | --- | --- | --- | --- |")
    for program in sorted(PROGRAMS.glob("*.py")):
        if not options.programs or program.stem in options.programs:
            for row in _compare(program, options.steps, options.rounds):
                print(row, flush=True)


def _compare(program: Path, steps: int, rounds: int) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder, open(os.devnull, "w") as nowhere:
        before = Path(folder, "model.py")
        before.write_text(program.read_text())
        settings = api.settings("cpu:1", stdout=nowhere.fileno())
        found = api.suggest(str(before), settings, StepOptions(cores=os.cpu_count() or 1), 120)
        for trial in found.best:
            after = Path(folder, "changed.py")
            after.write_text(trial.texts[str(before)])
            yield _write_row(program.stem, trial, _measure([before, after], steps, rounds))


def _measure(files: list[Path], steps: int, rounds: int) -> list[list[float]]:
    """Return the seconds of each file's undisturbed steps."""
    every: list[list[float]] = [[] for _ in files]
    for _ in range(rounds):
        for file, kept in zip(files, every, strict=True):
            words = [sys.executable, __file__, "--time", str(file), "--steps", str(steps)]
            done = subprocess.run(words, capture_output=True, text=True, check=True)
            kept += [time for time, waited in json.loads(done.stdout.splitlines()[-1]) if waited <= _QUIET * time]
    return every


def _write_row(name: str, trial: Trial, measured: list[list[float]]) -> str:
    change = describe_change(trial.change).rpartition("model.py:")[2]
    row = f"| {name} | line {change} | {trial.gain:.0%} ± {trial.gain_error:.0%} |"
    counts = " and ".join(str(len(kept)) for kept in measured)
    if min(map(len, measured)) < _LEAST:
        return f"{row} | | {counts} |"
    before, after = map(median, measured)
    gain = 1 - after / before
    times = f"{gain:.0%} ({before * 1e3:.2f} to {after * 1e3:.2f} ms)"
    return f"{row} {times} | {100 * (gain - trial.gain):+.0f} | {counts} |"


def _time_steps(file: str, steps: int) -> Iterator[tuple[float, float]]:
    """Run a program, then its `step(*inputs)`; yield the seconds of each, and how long threads waited for a core."""
    names: dict[str, Any] = runpy.run_path(file)
    step, inputs = names["step"], names["inputs"]
    for _ in range(_WARM_UP):
        step(*inputs)
    for _ in range(steps):
        waited, began = _read_delay(), time.perf_counter()
        step(*inputs)
        yield time.perf_counter() - began, _read_delay() - waited


def _read_delay() -> float:
    """Return how long the threads of this process have waited for a core, in seconds (Linux alone tells)."""
    total = 0
    for task in Path("/proc/self/task").iterdir():
        try:
            total += int((task / "schedstat").read_text().split()[1])
        except OSError:  # the thread has ended
            continue
    return total / 1e9


if __name__ == "__main__":
    main()
