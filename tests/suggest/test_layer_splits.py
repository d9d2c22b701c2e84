"""Layers of Keras over GPUs: the calls that make them are found, and the patch puts them there with the same values."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path

import pytest

import simplace
from simplace.executor.step_options import StepOptions
from simplace.suggestions.changes import LayersOverGpus
from simplace.suggestions.edits import apply_edits
from simplace.suggestions.estimated_step import Estimate, Step
from simplace.suggestions.evidence import Evidence
from simplace.suggestions.layer_edits import find_optimizers, write_layer_edits
from simplace.suggestions.layer_splits import find_layer_splits
from simplace.suggestions.layer_units import Makers, list_layers
from simplace.suggestions.source_file import SourceFile
from simplace.suggestions.split_search import Unit, search_split
from simplace.suggestions.suggestion_sentences import describe_change

LOOP = '''\
"""A stack."""
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.layers.Dense(8) for _ in range(3)] + [tf.keras.layers.Dense(1)])
'''
TOWERS = """\
from pathlib import Path
import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(0)
dense = tf.keras.layers.Dense
x = tf.keras.Input([16])
a = dense(32, activation="relu")(x)
b = tf.keras.layers.BatchNormalization()(dense(32)(x))
c = tf.keras.layers.Add()([a, b])
model = tf.keras.Model(x, dense(1)(c))
model.compile("adam", "mse", jit_compile=False)
x = np.random.default_rng(0).random([8, 16], np.float32)
history = model.fit(x, x[:, :1], batch_size=4, epochs=2, shuffle=False, verbose=0)
Path("loss.txt").write_text(str(history.history["loss"]))
"""


def test_layers_of_one_call_take_the_next_device_each():
    source = SourceFile("model.py", LOOP)
    first, last = (call for call in source.calls if source.segment(call.func).endswith("Dense"))
    calls = {"dense": (source, first), "dense_1": (source, first), "dense_2": (source, first), "last": (source, last)}
    devices = {"dense_1": "/GPU:1", "dense_2": "/GPU:1", "last": "/GPU:1"}
    text = apply_edits(source, write_layer_edits(Makers(calls), devices, [], "/GPU:0", has_gradients=False))
    lines = text.splitlines()
    assert lines[1:4] == ["import functools", "import itertools", "import tensorflow as tf"]
    assert lines[-3:] == [
        'layer_devices = itertools.cycle(["/GPU:0"] + 2 * ["/GPU:1"])',
        "",
        "model = tf.keras.Sequential([on_device(next(layer_devices), tf.keras.layers.Dense(8)) for _ in range(3)]"
        ' + [on_device("/GPU:1", tf.keras.layers.Dense(1))])',
    ]
    assert [node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)] == ["on_device"]


def test_what_was_added_is_not_changed_again():
    source = SourceFile(
        "m.py", "import tensorflow as tf\ndef on_device(d, x):\n    with tf.device(d):\n        return x\n"
    )
    assert (source.statement_at(4), source.scope_at(3)) == (None, None)


def test_units_that_read_each_other_in_a_loop_are_split_as_well():
    units = [Unit((0,), 100_000, frozenset({1})), Unit((1,), 100_000, frozenset({0}))]
    apart, together = Estimate(0, 100), Estimate(0, 200)
    found = search_split(units, 2, together, lambda chosen: apart if len(set(chosen)) > 1 else together)
    assert found in ((0, 1), (1, 0))
    assert search_split(units, 2, together, lambda chosen: together) is None


@pytest.mark.tf
@pytest.mark.usefixtures("forked")
def test_layers_compute_and_learn_where_they_are_put(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    Path("model.py").write_text(TOWERS)
    evidence, before = _run(), Path("loss.txt").read_text()
    layers = {layer.name: layer for layer in list_layers(evidence, Makers.of(evidence))}
    assert [(name, layer.call.lineno) for name, layer in layers.items()] == [
        ("dense", 8), ("batch_normalization", 9), ("dense_1", 9), ("add", 10), ("dense_2", 11),
    ]  # fmt: skip
    assert {len(layer.variables) for layer in layers.values()} == {0, 6, 8}  # kernel and bias, and two slots of each
    assert [type(given) for _, given in find_optimizers(evidence)] == [ast.Constant]

    def prefer(pins: Mapping[str, str], _: object) -> Estimate:
        """Take a step to be short where the second tower is on GPU:1, and little else."""
        second = (*layers["dense_1"].forward, *layers["batch_normalization"].forward)
        wanted = {evidence.placed.placement.graph.names[node] for node in second}
        moved = {name for name, device in pins.items() if device == "/GPU:1"}
        return Estimate(0, 10_000 - 100 * len(wanted & moved) + len(moved))

    ((change, _),) = find_layer_splits(evidence, prefer)
    assert isinstance(change, LayersOverGpus)
    assert {"dense_1", "batch_normalization"} <= dict(change.devices).keys()
    assert describe_change(change).endswith(" on /GPU:1, and update their variables there")
    Path("model.py").write_text(apply_edits(evidence.files[0], change.edits))
    after = _run()
    assert after.result.agrees
    assert Path("loss.txt").read_text() == before
    placement = after.placed.placement
    moved = [layer for layer in list_layers(after, Makers.of(after)) if layer.name in dict(change.devices)]
    nodes = [node for layer in moved for node in layer.nodes if placement.graph.ops[node] in HEAVY]
    computed = {placement.device(node)[-5:] for node in nodes}
    kept = {after.variables[node].device[-5:] for layer in moved for node in layer.variables}
    assert (computed, kept) == ({"GPU:1"}, {"GPU:1"})  # forward ops, gradients, updates; variables and slots


HEAVY = ("MatMul", "FusedBatchNormV3", "FusedBatchNormGradV3", "AssignAddVariableOp", "AssignSubVariableOp")


def _run() -> Evidence:
    result = simplace.place("model.py", "cpu:1,gpu:2")
    placed = next(one for one in result.programs if one.placement.program.role == "fit, train step")
    return Evidence("model.py", result, placed, Step.of(result, placed, StepOptions()).schedule)
