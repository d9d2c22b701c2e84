"""Try a change: apply it to copies of the files, run the program with them, simulate its step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import hypot, inf
from pathlib import Path
from typing import Literal

from simplace.analysis.time_sources import compare_errors
from simplace.doctor.failures import predict_failures
from simplace.errors import SimplaceError
from simplace.executor.step_options import StepOptions
from simplace.explain.failures import format_failure
from simplace.result import Placed, Result
from simplace.suggestions.changes import (
    Change,
    MirroredReplicas,
    OneDeviceStrategy,
    OtherBatch,
    PrefetchToDevice,
    ThreadSettings,
)
from simplace.suggestions.edits import ConflictError, apply_edits
from simplace.suggestions.estimated_step import Step, count_step_examples
from simplace.suggestions.evidence import Evidence
from simplace.suggestions.mirrored_changes import list_busy_gpus
from simplace.suggestions.thread_changes import time_unsure_waking, time_waking

_FIRST_CALL_OF_REPLICAS = (
    "the first call of the step makes variables, which TensorFlow may fail to do for several replicas: build the model "
    "before, with an Input layer, say"
)

Sources = tuple[tuple[str, str], ...]  # (absolute path, text)
Run = Callable[[Sources, bool], Result]  # with other texts of files, and whether the program then computes slowly here
Outcome = Literal[
    "held", "edits overlap", "program failed", "refused", "disagrees", "no such step", "not simulated", "would fail",
    "out of memory",
]  # fmt: skip


@dataclass(frozen=True)
class Trial:
    """Record of a change that was tried: what came of it, and the step before and after.

    `texts` are the new texts of the files that it changes, by name. `after` is None where there is no step to compare;
    `result` is what the changed program's run gave, None where it gave nothing. `error` says in a line what failed.
    """

    change: Change
    outcome: Outcome
    before: Step
    after: Step | None = None
    texts: Mapping[str, str] = field(default_factory=dict, repr=False)
    result: Result | None = None
    error: str = ""

    @property
    def places(self) -> frozenset[tuple[str, str]]:
        """Return the kind and the line of each change that it makes."""
        return frozenset((part.kind, part.at) for part in self.change.list_parts())

    def over(self, other: Trial) -> Trial:
        """Return the same trial compared with the step of another one, which has held, instead of the program's own."""
        assert other.after is not None, "what has held has a step"
        return replace(self, before=other.after)

    @property
    def makes_fit(self) -> bool:
        """Return whether the step fits in memory with the change, and does not without."""
        return self.outcome == "held" and not self.before.memory.fits

    @property
    def missing(self) -> float:
        """Return the bytes that devices lack with the change, infinity where there is nothing to run."""
        return self.after.missing if self.after is not None and self.outcome in ("held", "out of memory") else inf

    @property
    def is_per_example(self) -> bool:
        """Return whether what counts is the time of an example: the step takes in another number of them."""
        return any(
            isinstance(part, (OtherBatch, OneDeviceStrategy, MirroredReplicas)) for part in self.change.list_parts()
        )

    @property
    def gain(self) -> float:
        """Return the share of the time that the change saves, 0 where it did not hold; negative for a loss."""
        if self.outcome != "held" or self.after is None:
            return 0.0
        before, after = (
            (self.before.per_example, self.after.per_example)
            if self.is_per_example
            else (self.before.nanoseconds, self.after.nanoseconds)
        )
        return 1 - after / before if before else 0.0

    @property
    def gain_error(self) -> float:
        """Return how far off the gain is in the mean, as a share of the time before."""
        if self.after is None:
            return 0.0
        error = (1 - self.gain) * compare_errors(self.before.errors, self.after.errors)
        if not any(isinstance(part, ThreadSettings) for part in self.change.list_parts()):
            return error
        return hypot(error, time_unsure_waking(self.before.schedule, self.after.schedule) / self.before.nanoseconds)


def try_change(change: Change, evidence: Evidence, before: Step, run: Run, options: StepOptions) -> Trial:
    """Run the program with a change of the files that the evidence is of, and simulate its step.

    `before` is the step to compare with; `run` runs the program with other texts of its files. Those that the evidence
    has already may be of a change that makes the program compute slowly here, as this one may.
    """
    changed = {edit.file for edit in change.edits}
    try:
        new = {file.name: apply_edits(file, change.edits) for file in evidence.files if file.name in changed}
    except ConflictError as error:
        return Trial(change, "edits overlap", before, error=str(error))
    texts = {**evidence.texts, **new}
    try:
        is_slow = evidence.is_slow or change.is_slow
        result = run(tuple((str(Path(name).resolve()), text) for name, text in texts.items()), is_slow)
    except SimplaceError as error:
        return Trial(change, "program failed", before, None, texts, error=str(error))
    return _judge(Trial(change, "held", before, None, texts, result), evidence, options)


def _judge(trial: Trial, evidence: Evidence, options: StepOptions) -> Trial:
    result = trial.result
    assert result is not None

    def ended(outcome: Outcome, after: Step | None = None, error: str = "") -> Trial:
        return replace(trial, outcome=outcome, after=after, error=error)

    new = [failure for failure in predict_failures(result) if failure.rule not in evidence.failing_rules]
    if result.failure is not None and not new:
        return ended("program failed", error=str(result.failure))
    if result.failure is not None:
        return ended("would fail", error=format_failure(new[0]))
    placed = find_again(evidence.placed, result)
    if placed is None:
        return ended("no such step")
    if any(cluster.has_control_flow for cluster in placed.clusters):
        return ended("not simulated")
    if new:
        return ended("would fail", error=format_failure(new[0]))
    if placed.placement.refusal is not None:
        return ended("refused", error=placed.placement.refusal.message.splitlines()[0])
    if not result.agrees:
        return ended("disagrees")
    try:
        step = _simulate_step(trial, result, placed, evidence, options)
    except SimplaceError as error:
        return ended("no such step", error=str(error))
    if not _is_wanted(trial.change, step, count_step_examples(evidence.schedule)):
        return ended("no such step")
    if isinstance(trial.change, MirroredReplicas) and any(one.is_first_call for one in result.programs):
        return ended("would fail", error=_FIRST_CALL_OF_REPLICAS)
    return ended("held" if step.memory.fits else "out of memory", step)


def _is_wanted(change: Change, step: Step, before: int) -> bool:
    """Return whether a step takes in as many examples as its change promises, and uses the GPUs that it names."""
    if isinstance(change, OtherBatch):  # there may be fewer examples than that
        return step.examples == before * change.after // change.before
    if isinstance(change, MirroredReplicas):  # whose parts of a batch are of one size but for the last
        return len(list_busy_gpus(step.schedule)) == change.replicas and 0 <= step.examples - before < change.replicas
    return True


def _simulate_step(trial: Trial, result: Result, placed: Placed, evidence: Evidence, options: StepOptions) -> Step:
    """Simulate a step of the changed program, with the copies of its elements that are not part of its graph.

    A prefetch copies them beside a step. What XLA compiles whole gets its arguments copied before it begins.
    """
    before = count_step_examples(evidence.schedule)
    change, is_whole = trial.change, placed.placement.program.kind == "compiled"
    if isinstance(change, ThreadSettings):
        options = replace(options, inter_op=change.inter_op, intra_op=change.intra_op)
    step = Step.of(result, placed, options, before)
    woken = time_waking(evidence.schedule, step.schedule) if isinstance(change, ThreadSettings) else 0
    copied = evidence.copied * step.examples // before
    if isinstance(change, (PrefetchToDevice, MirroredReplicas)):
        copied = change.copied
    return replace(step, copied=copied, woken=woken, given=evidence.element_time if is_whole else 0)


def find_again(placed: Placed, result: Result) -> Placed | None:
    """Return the program that the step is of: by its role and name, the one that computes most of several."""
    program = placed.placement.program
    wanted = [
        one
        for one in result.programs
        if (one.placement.program.role, one.name) == (program.role, program.name) and not one.is_initializer
    ]
    return max(wanted, key=lambda one: (one.work, one.ops), default=None)
