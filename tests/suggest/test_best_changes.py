"""Which of the changes that were tried are suggested."""

from __future__ import annotations

from types import SimpleNamespace

from simplace.suggestions.best_changes import choose_trials
from simplace.suggestions.changes import NewScope


def trial(line: int, gain: float, error: float) -> SimpleNamespace:
    change = NewScope(edits=(), at=f"m.py:{line}", device="/GPU:0", variables=())
    before = SimpleNamespace(memory=SimpleNamespace(fits=True))
    return SimpleNamespace(change=change, gain=gain, gain_error=error, makes_fit=False, missing=0, before=before)


def test_a_gain_within_its_error_is_none() -> None:
    tried = [trial(1, 0.3, 0.1), trial(2, 0.05, 0.31), trial(3, 0.02, 0.0), trial(4, 0.1, 0.1)]
    assert [one.change.at for one in choose_trials(tried)] == ["m.py:1", "m.py:4"]
