"""Compare what is predicted of each program with what TensorFlow does: recall, precision, and each that differs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from simplace.doctor.examinations import diagnose_result
from simplace.errors import SimplaceError
from simplace.machine.machine import Machine
from simplace.oracle import plugin
from simplace.oracle.launch import starting_by_forks
from simplace.result import Result
from simplace.targets import Settings, place_target
from tests.failures.read_cases import Case

_NAMES = 'FIRST, SECOND, AUTO = "GPU:0", "GPU:1", "auto"\n'
_COMPUTES_NOTHING = "an emulated GPU computes nothing"


@dataclass(frozen=True, slots=True)
class Measured:
    """Record of a program: TensorFlow's error ("" for none), and what the doctor predicts: rules and errors."""

    case: Case
    truth: str
    rules: tuple[str, ...]
    errors: tuple[str, ...]

    @property
    def fails(self) -> bool:
        """Return whether TensorFlow fails."""
        return bool(self.truth)

    @property
    def is_told(self) -> bool:
        """Return whether a failure is predicted."""
        return bool(self.rules)

    @property
    def is_as_declared(self) -> bool:
        """Return whether TensorFlow and the doctor do what the table of programs says."""
        return self.fails == bool(self.case.rules) and set(self.rules) <= set(self.case.rules)


def measure_cases(cases: Sequence[Case]) -> list[Measured]:
    """Run all programs under TensorFlow and under simplace."""
    truth = _ask_tensorflow(cases)
    with tempfile.TemporaryDirectory() as folder, starting_by_forks():
        return [_measure(case, truth[case.name], Path(folder)) for case in cases]


def recall(measured: Sequence[Measured]) -> float:
    """Return how many of the failing programs are predicted to fail."""
    failing = [each for each in measured if each.fails]
    return sum(each.is_told for each in failing) / max(1, len(failing))


def precision(measured: Sequence[Measured]) -> float:
    """Return how many of those that are predicted to fail do."""
    told = [each for each in measured if each.is_told]
    return sum(each.fails for each in told) / max(1, len(told))


@dataclass(frozen=True, slots=True)
class FailureCounts:
    """Record of a run of all programs: how many fail, and run, and how many of each are predicted to fail; ISO date."""

    date: str
    failing: int
    predicted: int
    sound: int
    false_alarms: int


def count_failures(measured: Sequence[Measured], date: str) -> FailureCounts:
    """Return how many programs fail and run, and how many of each are predicted to fail."""
    told = [[each.is_told for each in measured if each.fails == fails] for fails in (True, False)]
    return FailureCounts(date, len(told[0]), sum(told[0]), len(told[1]), sum(told[1]))


def _ask_tensorflow(cases: Sequence[Case]) -> dict[str, str]:
    built = str(plugin.build_plugin(_version()))
    given = json.dumps([{**asdict(case), "plugin": built} for case in cases])
    command, limit = [sys.executable, "-m", "tests.failures.truth"], 30 + 60 * len(cases)
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=limit, check=True)
    found: dict[str, str] = json.loads(done.stdout)
    for name, error in found.items():
        assert _COMPUTES_NOTHING not in error, f"{name} has no truth without a GPU: {error}"
    return found


def _version() -> str:
    from simplace.kernels.installed import installed_version

    return installed_version() or ""


def _measure(case: Case, truth: str, folder: Path) -> Measured:
    path = folder / f"{case.name.replace('/', '_')}.py"
    path.write_text(_NAMES + case.text)
    with open(os.devnull, "w") as nothing:
        settings = Settings(Machine(gpus=2), stdout=nothing.fileno(), timeout=120)
        try:
            result = place_target(str(path), settings, Result)
        except SimplaceError as error:
            return Measured(case, truth, (), (f"not explained: {error}",))
    found = [each for each in diagnose_result(result, is_saved=False, environment={}) if each.level == "error"]
    rules = tuple(dict.fromkeys(each.rule for each in found))
    errors = tuple(getattr(each, "error", "") or getattr(each, "message", "") for each in found)
    missed = (f"not explained: {result.failure}",) if result.failure and not rules else ()
    return Measured(case, truth, rules, errors + missed)
