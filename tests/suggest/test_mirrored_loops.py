"""A replica on each GPU for a training loop of one's own: which loops are taken, what the patch makes of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import simplace
from simplace.executor.step_options import StepOptions
from simplace.result import Result
from simplace.suggestions.estimated_step import Step
from simplace.suggestions.evidence import Evidence
from simplace.suggestions.mirrored_changes import list_busy_gpus
from simplace.suggestions.mirrored_loops import find_mirrored_loops, read_loop
from simplace.suggestions.source_file import SourceFile
from simplace.suggestions.trial import Sources, Trial, try_change

DEVICES = "cpu:1,gpu:2"
PROGRAM = """\
import tensorflow as tf

tf.keras.utils.set_random_seed(1)
features, labels = tf.random.normal([768, 64]), tf.random.uniform([768], maxval=10, dtype=tf.int32)
dataset = tf.data.Dataset.from_tensor_slices((features, labels)).batch(256)
hidden = tf.keras.layers.Dense(512, activation="relu")
model = tf.keras.Sequential([tf.keras.Input([64]), hidden, tf.keras.layers.Dense(10)])
loss_fn = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
optimizer = tf.keras.optimizers.Adam(0.01)


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = loss_fn(y, model(x, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


for epoch in range(2):
    for number, (x, y) in enumerate(dataset):
        loss = train_step(x, y)
    print(epoch, float(loss))
"""
PATCHED = '''\
import functools
import tensorflow as tf


strategy = tf.distribute.MirroredStrategy()


def on_each_gpu(step):
    """Run a training step on each GPU, with its part of the batch, and add up the losses that are returned."""

    @functools.wraps(step)
    def run(*parts):
        loss = strategy.run(step, args=parts)
        return None if loss is None else strategy.reduce("SUM", loss, axis=None)

    return run

tf.keras.utils.set_random_seed(1)
features, labels = tf.random.normal([768, 64]), tf.random.uniform([768], maxval=10, dtype=tf.int32)
dataset = tf.data.Dataset.from_tensor_slices((features, labels)).batch(256)
hidden = tf.keras.layers.Dense(512, activation="relu")
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.Input([64]), hidden, tf.keras.layers.Dense(10)])
    loss_fn = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = tf.keras.optimizers.Adam(0.01)
    optimizer.build(model.trainable_variables)


@tf.function
@on_each_gpu
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = loss_fn(y, model(x, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


for epoch in range(2):
    for number, (x, y) in enumerate(strategy.experimental_distribute_dataset(dataset)):
        loss = train_step(x, y)
    print(epoch, float(loss))
'''


def is_taken(old: str = "", new: str = "") -> bool:
    """Return whether the loop of the program is taken once a piece of it is another one."""
    assert old in PROGRAM
    return read_loop(SourceFile("model.py", PROGRAM.replace(old, new)), "train_step") is not None


def test_the_loop_of_the_guide_is_taken() -> None:
    assert is_taken()
    assert is_taken("    return loss\n", "")
    assert is_taken("for number, (x, y) in enumerate(dataset)", "for x, y in dataset")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("loss = loss_fn(y, model(x, training=True))", "loss = tf.reduce_mean(tf.square(model(x)))"),
        ("from_logits=True)", 'from_logits=True, reduction="sum")'),
        ("loss = loss_fn(y, model(x, training=True))", "loss = loss_fn(y, model(x))\n        loss += 1.0"),
        ("    return loss\n", "    return model(x)\n"),
        ("    return loss\n", "    return loss, loss\n"),
        ("optimizer = tf.keras.optimizers.Adam(0.01)", "optimizer = make()"),
        ("@tf.function\n", ""),
        ("@tf.function\n", "@tf.function(jit_compile=True)\n"),
        ("loss = train_step(x, y)\n", "loss = train_step(x, y)\n        print(x.shape)\n"),
        ("loss = train_step(x, y)\n", "loss = train_step(x, 2 * y)\n"),
        ("for epoch in", "train_step(features, labels)\nfor epoch in"),
        ("for epoch in", "strategy = 1\nfor epoch in"),
    ],
    ids=[
        "a loss of its own", "a sum", "a loss with more", "predictions returned", "two results", "an unknown optimizer",
        "no function", "compiled by XLA", "an element used elsewhere", "a part of an element", "called elsewhere",
        "names taken",
    ],
)  # fmt: skip
def test_a_loop_of_another_shape_is_left_alone(old: str, new: str) -> None:
    assert not is_taken(old, new)


def try_loop(text: str) -> Trial:
    Path("model.py").write_text(text)
    result, options = simplace.place("model.py", devices=DEVICES), StepOptions(gpu="t4")
    placed = result.program("train_step")
    before = Step.of(result, placed, options)
    evidence = Evidence("model.py", result, placed, before.schedule)
    (change,) = find_mirrored_loops(evidence)

    def run(sources: Sources, is_slow: bool) -> Result:
        for path, changed in sources:
            Path(path).write_text(changed)
        return simplace.place("model.py", devices=DEVICES)

    return try_change(change, evidence, before, run, options)


@pytest.mark.tf
@pytest.mark.usefixtures("forked")
def test_each_gpu_takes_its_part_of_a_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    trial = try_loop(PROGRAM)
    assert trial.texts["model.py"] == PATCHED
    assert (trial.outcome, trial.error) == ("held", "")
    assert trial.after is not None
    assert trial.result is not None
    assert trial.result.agrees
    assert (trial.before.examples, trial.after.examples) == (256, 256)
    assert [len(list_busy_gpus(step.schedule)) for step in (trial.before, trial.after)] == [1, 2]
    assert trial.after.copied > 0
    patched = Evidence("model.py", trial.result, trial.result.largest(), trial.before.schedule, trial.texts)
    assert list(find_mirrored_loops(patched)) == []


@pytest.mark.tf
@pytest.mark.usefixtures("forked")
def test_a_model_that_the_first_step_builds_is_not_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert try_loop(PROGRAM.replace("tf.keras.Input([64]), ", "")).outcome == "program failed"
    more = "        more(x)\n    gradients"  # whose variables are none that the optimizer updates
    late = PROGRAM.replace("    gradients", more, 1).replace("hidden =", "more = tf.keras.layers.Dense(2)\nhidden =")
    trial = try_loop(late)
    assert (trial.outcome, trial.error.partition(",")[0]) == (
        "would fail",
        "the first call of the step makes variables",
    )


WITH_CPUS = """\
import tensorflow as tf
cpus = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(cpus[0], [tf.config.LogicalDeviceConfiguration()] * 2)
"""


@pytest.mark.tf
def test_the_patch_trains_to_the_same_values(tmp_path: Path) -> None:
    said = []
    for text in (PROGRAM, PATCHED.replace("MirroredStrategy()", 'MirroredStrategy(["/CPU:0", "/CPU:1"])')):
        Path(tmp_path, "model.py").write_text(WITH_CPUS + text)
        done = subprocess.run([sys.executable, "model.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
        said.append([float(word) for line in done.stdout.splitlines() for word in line.split()])
    assert said[0] == pytest.approx(said[1], rel=1e-4)
    assert said[0][3] < said[0][1]  # the loss of the second epoch, and of the first
