"""Suggestions for whole programs: what gains is found, what is suggested was confirmed by TensorFlow."""

from __future__ import annotations

import ast
import json
import shutil
from pathlib import Path

import pytest

import simplace
from simplace.api.suggesting import Suggested
from simplace.cli import main
from simplace.suggestions.suggestion_sentences import describe_change

PROGRAMS = Path(__file__).parent / "programs"
DEVICES = "cpu:1,gpu:2"
LONG = 600.0  # seconds: no search here is cut, however busy the machine is

tf = pytest.mark.tf
forked = pytest.mark.usefixtures("forked")


def suggested(program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Suggested:
    monkeypatch.chdir(tmp_path)
    shutil.copy(PROGRAMS / f"{program}.py", "model.py")
    found = simplace.suggest("model.py", DEVICES, seconds=LONG)
    for trial in found.best:
        assert trial.result is not None
        assert trial.after is not None
        assert trial.result.agrees
        assert trial.gain > 0
        assert trial.change.changes_values or found.bound <= trial.after.nanoseconds  # else it has other ops
        assert all(ast.parse(text) for text in trial.texts.values())
    return found


@tf
@forked
@pytest.mark.parametrize(
    ("program", "gain", "change"),
    [
        ("product_on_cpu", 0.9, 'model.py:11: name "/GPU:0" in place of "/CPU:0"; '
                                'model.py:5: name "/GPU:0" in place of "/CPU:0", for Variable'),
        ("embedding_on_cpu", 0.9, 'model.py:12: name "/GPU:0" in place of "/CPU:0"; '
                                  'model.py:5: name "/GPU:0" in place of "/CPU:0", for table'),
        ("integer_product", 0.9, "model.py:5: compute in float32 in place of int32 (2 places)"),
        ("doubles_by_numpy", 0.5, "model.py:6: compute in float32 in place of float64 (2 places)"),
        ("tiny_map", 0.5, "model.py:6: let XLA compile it (jit_compile=True)"),
    ],
)  # fmt: skip
def test_what_gains_is_found(
    program: str, gain: float, change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    best = suggested(program, tmp_path, monkeypatch).best[0]
    assert best.gain > gain
    assert describe_change(best.change) == change


@tf
@forked
def test_nothing_is_suggested_where_nothing_gains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = suggested("already_good", tmp_path, monkeypatch)
    assert found.best == ()
    assert "nothing to suggest: no change saves 5% or more" in str(found)


@tf
@forked
def test_gradients_beside_their_ops_are_written_so_that_the_program_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = suggested("gradients_on_cpu", tmp_path, monkeypatch)
    (trial,) = (one for one in found.tried if one.change.kind == "colocated-gradients")
    assert trial.outcome == "held"
    assert "tf.compat.v1.gradients(loss, weight, colocate_gradients_with_ops=True)[0]" in trial.texts["model.py"]


@tf
@forked
def test_the_command_writes_json_and_applies_a_suggestion_beside_a_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    before = (PROGRAMS / "round_trip.py").read_text()
    Path("model.py").write_text(before)
    Path("model.py.orig").write_text("an older copy\n")
    words = ["suggest", "model.py", "--devices", DEVICES, "--seconds", "600", "--json", "out.json", "--apply", "2"]
    assert main(words) == 0
    out, err = capsys.readouterr()
    assert "1. saves 9" in out
    assert "--- model.py\n+++ model.py\n" in out
    assert err.splitlines()[-1] == "changed model.py; what it was is in model.py.orig1"
    assert Path("model.py.orig").read_text() == "an older copy\n"
    assert Path("model.py.orig1").read_text() == before
    assert Path("model.py").read_text() == before.replace('"/CPU:0"', '"/GPU:0"')
    found = json.loads(Path("out.json").read_text())
    compiled, moved = found["suggestions"]
    assert [one["kind"] for one in compiled["changes"]] == ["compiled-by-xla"]
    assert (found["schema"], moved["changes"]) == (
        "simplace/suggestion/1",
        [{"kind": "scope-device", "line": "model.py:11", "before": '"/CPU:0"', "after": "/GPU:0", "variables": []}],
    )
    assert moved["agrees"]["same"] == moved["agrees"]["total"]


def test_a_file_without_lines_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "graph.pbtxt").write_text("")
    assert main(["suggest", str(tmp_path / "graph.pbtxt")]) == 2
    assert "suggestions are changes of source lines; name the script that makes this model" in capsys.readouterr().err


@tf
@forked
def test_a_program_that_raises_gets_its_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "broken.py"
    script.write_text("import tensorflow as tf\ntf.function(lambda x: x + 1)(tf.ones(2))\nraise ValueError('no')\n")
    assert main(["suggest", str(script), "--devices", "cpu:1,gpu:1"]) == 1
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == f"simplace: {script}: the program stopped with ValueError: no at {script}:3"


@tf
@forked
@pytest.mark.parametrize("devices", ["cpu:1", "cpu:2"])
def test_scopes_of_gpus_on_a_machine_without_any(devices: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(PROGRAMS / "chain_on_two_gpus.py", "model.py")
    found = simplace.suggest("model.py", devices, seconds=LONG)
    assert {part.kind for trial in found.tried for part in trial.change.list_parts()} <= {
        "compiled-by-xla",
        "scope-device",
    }


ASSERTING = """
import tensorflow as tf

total = tf.Variable(0.0)

@tf.function
def step(x):
    with tf.device("/CPU:0"):
        y = tf.matmul(x, x)
    total.assign_add(tf.reduce_sum(y))

for _ in range(3):
    step(tf.ones([256, 256]))
assert total.numpy() == 3 * 256.0**3
"""


@tf
@forked
def test_a_changed_program_computes_as_many_calls_as_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It asserts what several calls add up to, and would fail on fewer."""
    monkeypatch.chdir(tmp_path)
    Path("model.py").write_text(ASSERTING)
    found = simplace.suggest("model.py", "cpu:1,gpu:1", seconds=LONG)
    assert "scope-device" in {trial.change.kind for trial in found.best}
    assert {trial.outcome for trial in found.tried} == {"held"}
