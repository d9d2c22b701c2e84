"""Suggestions with costs that were recorded of the program's ops: only what leaves these as they are can be timed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import simplace
from simplace.api import measuring
from simplace.api.suggesting import Suggested
from simplace.cli import main
from simplace.costs.chosen_model import cost_model

PROGRAM = """\
import tensorflow as tf

tf.config.threading.set_inter_op_parallelism_threads(1)
tf.config.threading.set_intra_op_parallelism_threads(1)
weights = [tf.Variable(tf.ones([64, 64], tf.float64)) for _ in range(2)]


@tf.function
def step(x):
    return tf.add_n([tf.reduce_sum(tf.matmul(x, weight)) for weight in weights])


for rows in tf.data.Dataset.from_tensor_slices(tf.ones([128, 64])).map(lambda row: tf.cast(row, tf.float64)).batch(64):
    step(rows)
"""
COSTS = {"schema": "simplace/costs/1", "nodes": {"MatMul": 4e-3, "MatMul_1": 4e-3}}
PRODUCTS = 8e-3
INTER = "set_inter_op_parallelism_threads"

pytestmark = [pytest.mark.tf, pytest.mark.usefixtures("forked")]


@pytest.fixture(autouse=True)
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("model.py").write_text(PROGRAM)
    Path("costs.json").write_text(json.dumps(COSTS))


def list_tried(found: Suggested) -> list[str]:
    return [trial.change.kind for trial in found.tried]


def check_recorded(found: Suggested) -> None:
    assert list_tried(found) == ["threads"]  # another batch, or XLA, would make other ops
    assert PRODUCTS <= found.before.schedule.makespan_s < 1.2 * PRODUCTS
    (threads,) = found.best
    assert threads.texts["model.py"] == PROGRAM.replace(f"{INTER}(1)", f"{INTER}(0)")
    assert threads.gain == pytest.approx(0.48, abs=0.02)
    assert "with recorded costs no change was tried that makes other ops" in str(found)
    assert found.before.input is not None  # its time is modelled


def test_a_file_of_costs() -> None:
    check_recorded(simplace.suggest("model.py", "cpu:1", program="step", costs="costs.json"))


def test_costs_that_are_measured_now(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def measure(target, placed, options, gpu, gpu_memory_fraction, cpu):
        asked.append((target, placed.name, tuple(options.arguments), options.timeout))
        return cost_model("costs.json")

    monkeypatch.setattr(measuring, "measure_costs", measure)
    check_recorded(simplace.suggest("model.py", "cpu:1", program="step", costs="measured", timeout=100.0))
    assert asked == [("model.py", "step", (), 100.0)]


def test_modelled_costs_hold_for_other_ops() -> None:
    assert {"batch", "compiled-by-xla"} <= set(list_tried(simplace.suggest("model.py", "cpu:1", program="step")))


def test_a_file_that_is_none_is_refused_before_anything_runs(capsys: pytest.CaptureFixture[str]) -> None:
    Path("model.py").write_text("print('I ran')")
    assert main(["suggest", "model.py", "--devices", "cpu:1", "--costs", "none.json"]) != 0
    assert "none.json" in capsys.readouterr().err
