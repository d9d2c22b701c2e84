"""`python -m tests.suggest [NAME ...]`: what is suggested for each program, as the table of docs/suggest.md."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from simplace import api
from simplace.api.suggesting import Suggested
from simplace.executor.step_options import StepOptions
from simplace.oracle.launch import starting_by_forks
from simplace.suggestions.suggestion_sentences import describe_change
from simplace.views.text.quantities import format_duration

PROGRAMS = Path(__file__).parent / "programs"
DEVICES = "cpu:1,gpu:2"


def main(words: list[str]) -> int:
    """Print a row for each program; exit with 1 if a suggestion was not confirmed by TensorFlow's log."""
    wrong = 0
    print("| program | a step | best suggestion | then | saves | confirmed |\n| --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder, starting_by_forks():
        os.chdir(folder)
        for program in sorted(PROGRAMS.glob("*.py")):
            if words and not any(word in program.stem for word in words):
                continue
            shutil.copy(program, "model.py")
            found = api.suggest("model.py", api.settings(DEVICES, stdout=2), StepOptions(), 120)
            confirmed = sum(trial.result is not None and trial.result.agrees for trial in found.best)
            wrong += confirmed < len(found.best)
            print(f"| {program.stem} | {_write_row(found)} | {confirmed} of {len(found.best)} |", flush=True)
    return int(wrong > 0)


def _write_row(found: Suggested) -> str:
    before = format_duration(found.before.nanoseconds)
    if not found.best:
        return f"{before} | - | - | -"
    best = found.best[0]
    assert best.after is not None
    per = " an example" if best.is_per_example else ""
    after = format_duration(best.after.nanoseconds)
    return f"{before} | {describe_change(best.change).replace('model.py:', 'line ')} | {after} | {best.gain:.0%}{per}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
