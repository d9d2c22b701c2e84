"""What a run with a change may take: how long, and how many calls of it are computed."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

import simplace
from simplace import targets
from simplace.api import suggesting
from simplace.cli import main
from simplace.errors import SimplaceError


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[targets.Settings]:
    """Return the settings of the runs of a program that has one step and one change to try."""
    monkeypatch.chdir(tmp_path)
    Path("model.py").touch()
    seen: list[targets.Settings] = []
    step = SimpleNamespace(clusters=())
    result = SimpleNamespace(failure=None, eager=None, program=lambda name: step, python=())

    def place(target: str, settings: targets.Settings, kind: type) -> SimpleNamespace:
        seen.append(settings)
        return result

    def find(result, placed, run, options, seconds, stage, kind) -> None:
        run((), True)
        run((), False)
        raise SimplaceError("that was the change")

    monkeypatch.setattr(targets, "place_target", place)
    monkeypatch.setattr(suggesting, "find_suggestions", find)
    monkeypatch.setattr(suggesting, "find_split_limits", lambda placed, settings: {})
    return seen


def test_a_changed_program_has_three_times_as_long_and_computes_few_calls_where_it_is_slow(runs):
    with pytest.raises(SimplaceError, match="that was the change"):
        simplace.suggest("model.py", "cpu:1", program="step")
    assert [(run.timeout, run.calls) for run in runs] == [(300.0, 10), (20.0, 2), (20.0, 10)]


@pytest.mark.parametrize("timeout", [300.0, 7.0, None])
def test_a_timeout_that_is_given_holds_for_it(runs, timeout):
    with pytest.raises(SimplaceError):
        simplace.suggest("model.py", "cpu:1", program="step", timeout=timeout, calls=-1)
    assert [(run.timeout, run.calls) for run in runs] == 3 * [(timeout, -1)]


@pytest.mark.parametrize(("given", "for_changes"), [([], 20.0), (["--timeout", "300"], 300.0)])
def test_the_command_knows_whether_a_timeout_was_given(runs, given, for_changes):
    assert main(["suggest", "model.py", "--devices", "cpu:1", "--program", "step", *given]) != 0
    assert [run.timeout for run in runs] == [300.0, for_changes, for_changes]
