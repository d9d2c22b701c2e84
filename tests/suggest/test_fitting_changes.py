"""A step that does not fit in memory: what makes it fit is found, tried under TensorFlow, and told in numbers."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest

from simplace import api, targets
from simplace.errors import SimplaceError
from simplace.executor.step_options import StepOptions
from simplace.progress import show_nothing
from simplace.suggestions.edits import apply_edits
from simplace.suggestions.estimated_step import Estimate
from simplace.suggestions.find_suggestions import Suggestions, WithoutXla, find_suggestions
from simplace.suggestions.source_file import SourceFile
from simplace.suggestions.split_search import Unit, search_split
from simplace.suggestions.suggestion_sentences import (
    describe_change,
    describe_gain,
    describe_memory,
    describe_without_xla,
)
from simplace.suggestions.trial import Sources
from simplace.suggestions.xla_changes import find_xla_removals

TWO_PRODUCTS = """
import tensorflow as tf

first = tf.Variable(tf.ones([256, 256]))
second = tf.Variable(tf.ones([256, 256]))

@tf.function
def step(x):
    y = tf.matmul(x, first)
    z = tf.matmul(y, second)
    return tf.reduce_sum(z)

step(tf.ones([8, 256]))
"""
COMPILED_BY_KERAS = """
import numpy as np
import tensorflow as tf

layers = tf.keras.layers
x = tf.keras.Input([64])
a = layers.Dense(256)(x)
b = layers.Dense(256)(x)
model = tf.keras.Model(x, layers.Add()([a, b]))
model.compile("adam", "mse")
model.fit(np.ones([8, 64], np.float32), np.ones([8, 256]), batch_size=8, verbose=0)
"""


def test_units_are_spread_until_each_gpu_has_room():
    units = [Unit((i,), 100, frozenset({i - 1} if i else ()), size=40) for i in range(4)]

    def estimate(chosen: tuple[int, ...]) -> Estimate:
        held = [40 * chosen.count(gpu) for gpu in (0, 1)]
        copies = sum(a != b for a, b in pairwise(chosen))
        return Estimate(sum(max(0, size - 100) for size in held), 400 + 50 * copies)

    assert search_split(units, 2, estimate((0, 0, 0, 0)), estimate, room=100.0) in ((0, 0, 1, 1), (1, 1, 0, 0))
    assert search_split(units, 2, Estimate(0, 400), estimate) is None  # on one GPU it is quickest


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('model.compile("adam", "mse")', 'model.compile("adam", "mse", jit_compile=False)'),
        ("model.compile()", "model.compile(jit_compile=False)"),
        ("model.compile(\n    loss=mse,\n)", "model.compile(\n    loss=mse, jit_compile=False,\n)"),
        ('model.compile(loss="mse", jit_compile="auto")', 'model.compile(loss="mse", jit_compile=False)'),
        ("@tf.function(jit_compile=True)\ndef f(): pass", "@tf.function(jit_compile=False)\ndef f(): pass"),
        ("model.compile(jit_compile=False)", ""),
        ("import re\nre.compile('x')", ""),
        ("model.compile(loss=(mse))", ""),  # where an argument could stand is not certain
    ],
)
def test_what_keeps_xla_away_is_written_where_xla_is_turned_on(before: str, after: str):
    source = SourceFile("model.py", before)
    program = SimpleNamespace(role="fit, train step")
    evidence = SimpleNamespace(
        files=[source], placed=SimpleNamespace(placement=SimpleNamespace(program=program))
    )  # fmt: skip
    found = [apply_edits(source, change.edits) for change in find_xla_removals(evidence)]  # type: ignore[arg-type]
    assert found == ([after] if after else [])


@pytest.mark.long
@pytest.mark.tf
@pytest.mark.usefixtures("forked")
def test_variables_that_one_gpu_cannot_hold_go_to_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    Path("model.py").write_text(TWO_PRODUCTS)
    options = StepOptions(gpu="t4", gpu_memory_fraction=41e-6)  # 653,000 bytes of 15 GiB: two variables take more
    found = api.suggest("model.py", api.settings("cpu:1,gpu:2", stdout=2), options, 600)
    assert describe_memory(found.before) == "needs 776 KiB of 638 KiB on GPU:0: does not fit"
    best = found.best[0]
    assert (best.makes_fit, best.change.changes_values) == (True, False)
    assert best.result is not None
    assert best.result.agrees
    assert best.after is not None
    needed = {use.device[-5:]: best.after.memory.needed(use) for use in best.after.memory.uses}
    assert min(needed["GPU:0"], needed["GPU:1"]) >= 262_144
    assert max(needed["GPU:0"], needed["GPU:1"]) <= 654_000
    assert all(trial.after is not None and trial.after.memory.fits for trial in found.best)
    assert "saves" not in str(found)
    data = found.to_json()
    assert (data["step"]["fits"], data["suggestions"][0]["step"]["fits"]) == (False, True)


@pytest.mark.long
@pytest.mark.tf
@pytest.mark.usefixtures("forked")
def test_layers_that_xla_compiles_are_split_without_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Keras has XLA compile the whole step for GPU:0, which cannot hold all variables."""
    monkeypatch.chdir(tmp_path)
    Path("model.py").write_text(COMPILED_BY_KERAS)
    settings, options = api.settings("cpu:1,gpu:2", stdout=2), StepOptions(gpu="t4", gpu_memory_fraction=27e-6)
    ran: list[str] = []

    def run(sources: Sources, is_slow: bool) -> api.Placements:
        """Run the first two changed programs alone."""
        if len(ran) == 2:
            raise SimplaceError("not in this test")
        ran.append(sources[0][1])
        return targets.place_target("model.py", replace(settings, sources=sources), api.Placements)

    result = targets.place_target("model.py", settings, api.Placements)
    found = find_suggestions(result, result.largest(), run, options, 600, show_nothing, Suggestions)
    assert describe_memory(found.before).endswith(" on GPU:0: does not fit")
    alone, split = found.tried[:2]
    assert (alone.outcome, [part.kind for part in alone.change.list_parts()]) == (
        "out of memory",
        ["not-compiled-by-xla"],
    )
    assert [part.kind for part in split.change.list_parts()] == ["not-compiled-by-xla", "layers-over-gpus"]
    assert split.makes_fit
    assert "keep XLA from compiling it (jit_compile=False); " in describe_change(split.change)
    assert 'model.compile(update_in_place("adam"), "mse", jit_compile=False)' in split.texts["model.py"]
    assert found.without_xla is not None
    assert describe_without_xla(found.without_xla, found.before) == ""  # it is suggested
    assert describe_gain(split).startswith("makes it fit: needs ")
    without = describe_without_xla(WithoutXla(alone), found.before)
    assert without == (
        "XLA compiles this step for one GPU, so none of its ops can be on another one; jit_compile=False at "
        "model.py:10 would change that, but it was not confirmed: it does not fit in memory"
    )
    assert describe_without_xla(WithoutXla(), found.before) == (
        "XLA compiles this step for one GPU, so none of its ops can be on another one; --no-jit looks for splits of "
        "the program without XLA"
    )
