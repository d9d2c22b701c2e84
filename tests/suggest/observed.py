"""A program in the present folder, as it ran, with its step; and one change of it, tried as `simplace suggest` does."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import simplace
from simplace.executor.step_options import StepOptions
from simplace.result import Result
from simplace.suggestions.changes import Change
from simplace.suggestions.estimated_step import Step
from simplace.suggestions.evidence import Evidence
from simplace.suggestions.trial import Sources, Trial, try_change


@dataclass(frozen=True)
class Observed:
    """Record of a program that has run: what is known of it, its step, and under what both were found."""

    evidence: Evidence
    step: Step
    devices: str
    options: StepOptions

    def attempt(self, change: Change) -> Trial:
        """Run the program with a change; its files keep that."""

        def run(sources: Sources, is_slow: bool) -> Result:
            for path, changed in sources:
                Path(path).write_text(changed)
            return simplace.place("model.py", devices=self.devices)

        return try_change(change, self.evidence, self.step, run, self.options)


def observe(text: str, devices: str = "cpu:1,gpu:2", *, gpu: str = "a100", program: str | None = None) -> Observed:
    """Run a text as model.py, and simulate a step of a program of it, the largest by default."""
    Path("model.py").write_text(text)
    result, options = simplace.place("model.py", devices=devices), StepOptions(gpu=gpu)
    placed = result.program(program) if program else result.largest()
    step = Step.of(result, placed, options)
    return Observed(Evidence("model.py", result, placed, step.schedule), step, devices, options)
