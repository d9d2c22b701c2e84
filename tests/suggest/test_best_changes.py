"""Which of the changes that were tried are suggested."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from simplace.suggestions.best_changes import choose_trials
from simplace.suggestions.changes import NewScope, ThreadSettings
from simplace.suggestions.trial import Trial


def trial(line: int, gain: float, error: float) -> SimpleNamespace:
    change = NewScope(edits=(), at=f"m.py:{line}", device="/GPU:0", variables=())
    before = SimpleNamespace(memory=SimpleNamespace(fits=True))
    return SimpleNamespace(change=change, gain=gain, gain_error=error, makes_fit=False, missing=0, before=before)


def test_a_gain_within_its_error_is_none() -> None:
    tried = [trial(1, 0.3, 0.1), trial(2, 0.05, 0.31), trial(3, 0.02, 0.0), trial(4, 0.1, 0.1)]
    assert [one.change.at for one in choose_trials(tried)] == ["m.py:1", "m.py:4"]


@pytest.mark.parametrize(("milliseconds", "error"), [(5.0, 0.04), (0.5, 0.4)])
def test_a_gain_from_threads_is_as_uncertain_as_waking_them(milliseconds: float, error: float) -> None:
    def step(milliseconds: float) -> SimpleNamespace:
        memory = SimpleNamespace(fits=True)
        return SimpleNamespace(nanoseconds=milliseconds * 1e6, errors={"guessed kernel": 0.5}, memory=memory)

    before, after = step(milliseconds), step(milliseconds / 2)
    threads = ThreadSettings(edits=(), at="m.py:1", inter_op=0, intra_op=1)
    other = NewScope(edits=(), at="m.py:1", device="/GPU:0", variables=())
    assert [Trial(change, "held", before, after).gain_error for change in (threads, other)] == [error, 0.0]
