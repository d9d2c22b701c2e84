"""Search for the changes that save most: estimate many, try the best ones, go on from the best.

Where a step does not fit in memory, whatever makes it fit is better than all that does not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from simplace.analysis.device_comparison import DeviceComparison, compare_devices
from simplace.executor.step_options import StepOptions
from simplace.program.program import Program
from simplace.progress import Stage
from simplace.result import Placed, Result
from simplace.suggestions.batch_changes import find_batches
from simplace.suggestions.best_changes import (
    LEAST_GAIN,
    WORTH_TRYING,
    choose_trials,
    gains_surely,
    keep_best,
    lower_estimate,
    rank_trial,
    spread_kinds,
)
from simplace.suggestions.changes import (
    Change,
    MirroredReplicas,
    ThreadSettings,
    XlaCompilation,
    join_changes,
    relocate_change,
)
from simplace.suggestions.estimated_step import Estimate, Step, estimate_pinned
from simplace.suggestions.evidence import Evidence
from simplace.suggestions.gradient_changes import find_gradient_changes, find_update_changes
from simplace.suggestions.input_changes import find_parallel_maps, find_prefetches
from simplace.suggestions.layer_splits import find_layer_splits
from simplace.suggestions.line_splits import find_line_splits
from simplace.suggestions.mirrored_changes import find_mirroring
from simplace.suggestions.mirrored_loops import find_mirrored_loops
from simplace.suggestions.scope_changes import find_new_scopes, find_scope_changes, find_variable_devices
from simplace.suggestions.source_file import SourceFile, list_files
from simplace.suggestions.step_bound import find_bound
from simplace.suggestions.strategy_changes import find_reductions, find_strategy_changes
from simplace.suggestions.thread_changes import find_thread_settings, read_threads
from simplace.suggestions.trial import Run, Trial, find_again, try_change
from simplace.suggestions.type_changes import find_mixed_precision, find_type_changes
from simplace.suggestions.xla_changes import find_xla_changes, find_xla_removals

_ROUNDS = 4
_TRIED = 6  # of those that an estimate says gain
_ESTIMATED_SHARE = 0.4  # of the time: for estimates

_WITH_PINS: tuple[Callable[[Evidence], Iterator[Change]], ...] = (
    find_scope_changes, find_variable_devices, find_gradient_changes, find_update_changes,
    find_new_scopes,
)  # fmt: skip
_SMALLER: tuple[Callable[[Evidence], Iterator[Change]], ...] = (
    find_type_changes, find_batches, find_mixed_precision, find_mirroring, find_mirrored_loops,
)  # fmt: skip
_KEEPING_OPS: tuple[Callable[[Evidence], Iterator[Change]], ...] = (find_parallel_maps, find_prefetches)
_WITHOUT_PINS: tuple[Callable[[Evidence], Iterator[Change]], ...] = (
    find_strategy_changes, find_reductions, *_SMALLER, *_KEEPING_OPS,
)  # fmt: skip


@dataclass(frozen=True)
class WithoutXla:
    """Record of what was tried of a step that XLA compiles for one of several GPUs.

    `alone` is the trial of the program without XLA, None where nothing in its files turns XLA on. `estimated` is the
    nanoseconds of the best split of that by an estimate, 0 for none, `split` its trial where that was worth it.
    """

    alone: Trial | None = None
    estimated: int = 0
    split: Trial | None = None


@dataclass(frozen=True)
class Suggestions:
    """Record of a search: the step as it is, the changes that gain, the best first, and all that was tried.

    `without_xla` is None where XLA does not compile the step for one of several GPUs. `mirrored` compares the step with
    that of a replica on each GPU, with larger batches, too; None where that was not tried, or gains. `bound` is the
    nanoseconds below which no placement of the step's ops comes. `found` is how many changes were looked at, `is_cut`
    whether the time ended before all of them were.
    """

    evidence: Evidence
    before: Step
    best: tuple[Trial, ...]
    tried: tuple[Trial, ...]
    bound: int
    found: int
    is_cut: bool
    without_xla: WithoutXla | None = None
    mirrored: DeviceComparison | None = None

    def changed_files(self, trial: Trial) -> list[SourceFile]:
        """List the files, as they are on disk, that a change gives other texts."""
        return [file for file in self.evidence.files if trial.texts.get(file.name, file.text) != file.text]


S = TypeVar("S", bound=Suggestions)  # the class of the suggestions


def find_suggestions(
    result: Result, placed: Placed, run: Run, options: StepOptions, seconds: float, stage: Stage, kind: type[S]
) -> S:
    """Search for at most three changes of a script that make a step of one of its programs fit in memory, and faster.

    `run` runs the script of `result` with other texts of its files, `kind` is the class of what is returned. Once all
    changes were tried, the best one is taken as the program, and what could be changed in that is tried, and so on as
    long as it gains and for `seconds` at most. Raises `SimplaceError` where the step cannot be simulated.
    """
    script = result.target
    options = read_threads(list_files(iter([script]), script), options)
    before = Step.of(result, placed, options)
    evidence = Evidence(script, result, placed, before.schedule)
    search = _Search(before, run, options, _Clock(seconds), stage)
    search.climb(evidence)
    best = tuple(choose_trials(search.trials))
    bound, mirrored = find_bound(placed, before.schedule), compare_replicas(search.trials)
    return kind(
        evidence, before, best, tuple(search.trials), bound, search.found, search.clock.has_ended, search.without_xla,
        mirrored,
    )  # fmt: skip


class _Clock:
    """The time that a search may take."""

    def __init__(self, seconds: float) -> None:
        self._start = time.monotonic()
        self._seconds = seconds
        self.has_ended = False

    def is_over(self, share: float = 1.0) -> bool:
        """Return whether a share of the time has passed; remember that of the whole."""
        over = time.monotonic() - self._start > share * self._seconds
        self.has_ended |= over and share == 1.0
        return over


class _Search:
    def __init__(self, before: Step, run: Run, options: StepOptions, clock: _Clock, stage: Stage) -> None:
        self.before = before
        self.run = run
        self.options = options
        self.clock = clock
        self.stage = stage
        self.trials: list[Trial] = []
        self.failed: set[tuple[str, str]] = set()  # kinds and lines of changes with which the program fails
        self.found = 0
        self.without_xla: WithoutXla | None = None

    def climb(self, evidence: Evidence) -> None:
        """Try changes of the program, then changes of the best program so far, until none gains or the time is over.

        What XLA compiles is a suggestion by itself: it makes other kernels of the same ops, wherever they are placed.
        So are settings of threads, which hold for all of a program. Neither is tried for a step that does not fit.
        """
        best: Trial | None = None
        for _ in range(_ROUNDS):
            after = None if best is None else best.after
            step = after or self.before
            found = list(self._split_compiled(evidence)) if best is None else []
            candidates = self._list_candidates(evidence, step)
            if best is None and self.before.memory.fits:
                alone: list[Change] = [] if evidence.has_recorded_costs else [*find_xla_changes(evidence)]
                alone += self._choose_threads(evidence, step)
                self.found += len(alone)
                candidates += alone
            found += self._try_all(candidates, evidence, best)
            by_placement = (one for one in found if not isinstance(one.change, (XlaCompilation, ThreadSettings)))
            better = min((one for one in by_placement if self._is_better(one, best)), key=rank_trial, default=None)
            if better is None or better.after is None or better.result is None or self.clock.is_over():
                return
            best, evidence = better, _take_over(evidence, better)

    def _split_compiled(self, evidence: Evidence) -> Iterator[Trial]:
        """Try the step that XLA compiles for one of several GPUs without XLA, and what could then be split over them.

        The split is tried if its estimate is better than the step that XLA compiles.
        """
        if len(evidence.gpus) < 2 or not evidence.placed.is_mostly_compiled or evidence.has_recorded_costs:
            return
        self.without_xla = WithoutXla()
        removals = [*find_xla_removals(evidence)][:1]
        self.found += len(removals)
        for alone in self._try_all(removals, evidence, None):
            self.without_xla = WithoutXla(alone)
            yield alone
            if alone.after is None:
                return
            apart = _take_over(evidence, alone)
            best = min(self._estimate_splits(apart), key=lambda one: one[0], default=None)
            if best is not None:
                self.without_xla = WithoutXla(alone, best[0].nanoseconds)
                worth = best[0] < lower_estimate(evidence.estimate)
                for split in self._try_all([best[1]] if worth else [], apart, alone):
                    self.without_xla = replace(self.without_xla, split=split)
                    yield split

    def _is_better(self, trial: Trial, best: Trial | None) -> bool:
        """Return whether a change is worth to go on from: it lacks less memory, or, if all fits, takes less time."""
        missing = self.before.missing if best is None else best.missing
        if missing:
            return trial.missing <= (1 - WORTH_TRYING) * missing
        gain = 0.0 if best is None else best.gain
        return trial.outcome == "held" and 1 - trial.gain <= (1 - WORTH_TRYING) * (1 - gain)

    def _try_all(self, candidates: Sequence[Change], evidence: Evidence, best: Trial | None) -> Iterator[Trial]:
        """Try changes on top of the best change so far, as long as there is time, but for those that failed before."""
        for number, change in enumerate(candidates, 1):
            if self.clock.is_over():
                return
            key = change.kind, evidence.original_line(change.at)
            if key in self.failed:
                continue
            so_far = max((trial.gain for trial in self.trials), default=0.0)
            saves = f"; the best saves {so_far:.0%}" if so_far >= LEAST_GAIN else ""
            self.stage(f"trying change {number} of {len(candidates)} ({change.kind} at {change.at}){saves}")
            trial = try_change(change, evidence, self.before, self.run, self.options)
            if best is not None:
                change = relocate_change(change, evidence.original_line)
                trial = replace(trial, change=join_changes(best.change, change))
            if trial.outcome == "program failed":
                self.failed.add(key)
            self.trials.append(trial)
            yield trial

    def _list_candidates(self, evidence: Evidence, step: Step) -> list[Change]:
        """List what is worth a run: the pinned changes with the best estimates, and all others.

        What a session has placed before keeps its device in an estimate, and may not in a run: there a change that
        cannot be estimated is worth a run, too. With recorded costs nothing is that makes other ops.
        """
        start = self.found
        estimated = sorted(self._estimate_changes(evidence, step, start), key=lambda one: one[0])
        estimated = keep_best(estimated, evidence.estimate)
        finders = _WITHOUT_PINS if step.memory.fits else _SMALLER
        finders = _KEEPING_OPS if evidence.has_recorded_costs else finders
        others = [change for find in finders for change in find(evidence)]
        self.found += len(others)
        return [*spread_kinds(change for _, change in estimated)][:_TRIED] + others

    def _estimate_changes(self, evidence: Evidence, step: Step, start: int) -> Iterator[tuple[Estimate, Change]]:
        """Yield the pinned changes that gain by an estimate, with that of their steps."""
        is_session = evidence.placed.placement.program.kind == "session"
        most = lower_estimate(evidence.estimate)
        for change in self._list_pinned(evidence):
            self.found += 1
            if change.pins and not self.clock.is_over(_ESTIMATED_SHARE):
                self.stage(f"estimating change {self.found - start}")
                estimate = self._estimate(evidence, change.pins)
                if estimate is None and is_session:
                    yield evidence.estimate, change
                elif estimate is not None and estimate < most:
                    yield estimate, change
        yield from ((estimate, split) for estimate, split in self._estimate_layers(evidence) if estimate < most)

    def _estimate_layers(self, evidence: Evidence) -> Iterator[tuple[Estimate, Change]]:
        for split, estimate in find_layer_splits(evidence, partial(self._estimate, evidence)):
            self.found += 1
            yield estimate, split

    def _estimate_splits(self, evidence: Evidence) -> Iterator[tuple[Estimate, Change]]:
        """Yield the best split of layers, or else of statements, with its estimate."""
        layers = list(self._estimate_layers(evidence))
        yield from layers
        for split in () if layers else find_line_splits(evidence, partial(self._estimate, evidence)):
            self.found += 1
            if (estimate := self._estimate(evidence, split.pins)) is not None:
                yield estimate, split

    def _choose_threads(self, evidence: Evidence, step: Step) -> list[ThreadSettings]:
        """Return the best settings of threads by an estimate, if they gain."""
        best = min(find_thread_settings(evidence), key=lambda one: one[1], default=None)
        most = (1 - LEAST_GAIN) * step.schedule.trace.makespan
        return [] if best is None or best[1] >= most else [best[0]]

    def _estimate(self, evidence: Evidence, pins: Mapping[str, str], program: Program | None = None) -> Estimate | None:
        if self.clock.is_over(_ESTIMATED_SHARE):
            return None
        return estimate_pinned(evidence.placed, evidence.others, pins, self.options, program, evidence.share)

    def _list_pinned(self, evidence: Evidence) -> Iterator[Change]:
        for find in _WITH_PINS:
            yield from find(evidence)
        yield from find_line_splits(evidence, partial(self._estimate, evidence))


def compare_replicas(trials: Sequence[Trial]) -> DeviceComparison | None:
    """Compare the step with that of a replica on each GPU, where that does not gain with the same batch.

    With a larger batch, too, a gain counts that is larger than its error, which is taken to be as with this batch.
    """
    for trial in trials:
        held = isinstance(trial.change, MirroredReplicas) and trial.outcome == "held" and trial.before.memory.fits
        if held and trial.after is not None and not gains_surely(trial):
            error = trial.gain_error / (1 - trial.gain)  # of what an example takes
            least = max(LEAST_GAIN, error / (1 + error))
            return compare_devices(trial.before.schedule, trial.after.schedule, least, trial.after.copied)
    return None


def _take_over(evidence: Evidence, trial: Trial) -> Evidence:
    """Return the evidence of the program that a change made."""
    assert trial.result is not None
    assert trial.after is not None
    placed, after = find_again(evidence.placed, trial.result), trial.after
    assert placed is not None, "a trial with a step has the program"
    is_slow = trial.change.is_slow  # with all that was changed before
    return Evidence(evidence.script, trial.result, placed, after.schedule, trial.texts, after.copied, is_slow)
