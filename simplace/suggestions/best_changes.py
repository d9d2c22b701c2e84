"""Order changes: those that are worth a run by their estimates, those that are suggested once they were tried."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence

from simplace.suggestions.changes import Change, Several
from simplace.suggestions.estimated_step import Estimate
from simplace.suggestions.trial import Trial

WORTH_TRYING = 0.03  # of a step: another change may add to it
LEAST_GAIN = 0.05  # of a step: gains that were measured were off by up to 0.04 (docs/suggest.md)
_SLOW = -1.0  # the gain of a step that takes twice as long
_MOST = 3  # suggestions


def lower_estimate(estimate: Estimate) -> Estimate:
    """Return what an estimate has to stay below to be worth a run: less time, or less missing in whatever time."""
    missing, nanoseconds = (int((1 - WORTH_TRYING) * number) for number in estimate)
    return Estimate(missing, sys.maxsize if estimate.missing else nanoseconds)


def keep_best(estimated: list[tuple[Estimate, Change]], present: Estimate) -> list[tuple[Estimate, Change]]:
    """Return the estimates that fit in memory, if some do, and of those the ones that are not slow, if some are."""
    fitting = [one for one in estimated if not one[0].missing]
    quick = [one for one in fitting if one[0].nanoseconds <= (1 - _SLOW) * present.nanoseconds]
    return quick or fitting or estimated


def spread_kinds(changes: Iterable[Change]) -> Iterator[Change]:
    """Order changes so that the best of each kind and line come first."""
    seen: set[tuple[str, str]] = set()
    later: list[Change] = []
    for change in changes:
        key = change.kind, change.at
        if key in seen:
            later.append(change)
        else:
            seen.add(key)
            yield change
    yield from later


def gains_surely(trial: Trial) -> bool:
    """Return whether a change saves enough time, and more than its error."""
    return trial.gain >= LEAST_GAIN and trial.gain > trial.gain_error


def _list_worthwhile(trials: Iterable[Trial]) -> list[Trial]:
    """List what makes the step fit or surely gains, also over each part of it that does so alone."""
    found: list[Trial] = []
    for trial in sorted(trials, key=lambda one: len(one.places)):
        over_parts = [trial.over(one) for one in found if one.places < trial.places]
        if all(one.makes_fit or gains_surely(one) for one in (trial, *over_parts)):
            found.append(trial)
    return found


def choose_trials(trials: Sequence[Trial]) -> Iterator[Trial]:
    """Choose what to suggest: the best changes, no two of one kind at one line, none that is part of a better one.

    A gain that is no larger than its error is none, and several changes have to gain as much over some of them. What
    makes a step fit counts even if that takes longer, and if twice as long where there is nothing else.
    """
    chosen: list[Trial] = []
    gained = _list_worthwhile(trials)
    gained = [one for one in gained if one.gain >= _SLOW] or gained
    for trial in sorted(gained, key=rank_trial):
        if len(chosen) == _MOST:
            break
        alike = any(
            (other.change.kind, other.change.at) == (trial.change.kind, trial.change.at)
            and not isinstance(trial.change, Several)
            for other in chosen
        )
        beaten = isinstance(trial.change, Several) and any(other.gain > trial.gain - LEAST_GAIN for other in chosen)
        if not alike and not beaten:
            chosen.append(trial)
    yield from chosen


def rank_trial(trial: Trial) -> tuple[float, bool, float, int, str]:
    """Return what orders changes: where memory lacks, those with the same values and no slow step come first."""
    is_worse = not trial.before.memory.fits and (trial.change.changes_values or trial.gain < _SLOW)
    return (trial.missing, is_worse, -trial.gain, len(trial.change.edits), trial.change.at)
