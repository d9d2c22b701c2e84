"""The doctor on whole programs: one that has every silent failure, and one that does the same things rightly."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from simplace.cli import main

pytestmark = pytest.mark.tf

# Each comment names what the doctor must find at its line.
SICK = """
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"  # hidden-log
import tensorflow as tf
from tensorflow import keras
from tensorflow.compat import v1

tf.constant(1)
tf.debugging.set_log_device_placement(True)  # late-log-flag

with tf.device("/GPU:7"):  # no-such-device
    tf.constant(2.0)

numbers = tf.data.Dataset.from_tensor_slices(tf.ones([4, 2, 2]))
with tf.device("/GPU:0"):
    products = numbers.map(lambda x: tf.matmul(x, x))  # dataset-scope

with tf.device("/GPU:1"):
    layer = keras.layers.Dense(3)
    layer.build((None, 2))  # layer-outside-scope

inputs = keras.Input((2,))
with tf.device("/GPU:1"):
    outputs = keras.layers.Dense(3)(inputs)  # layer-outside-scope
model = keras.Model(inputs, outputs)


@tf.function
def step(x):
    with tf.device("/GPU:5"):
        y = tf.matmul(x, x)  # no-such-device
    with tf.device("/GPU:1"):
        text = tf.strings.as_string(x)  # no-kernel
    root = tf.linalg.sqrtm(y)  # detour-over-cpu
    return layer(x), model(x), text, tf.matmul(root, root), tf.range(tf.shape(x)[0])


step(tf.ones([2, 2]))

with tf.Graph().as_default(), v1.Session() as session:
    with tf.device("/CPU:0"):
        variable = v1.Variable(1.0, use_resource=False)
    with tf.device("/GPU:0"):
        assign = v1.assign(variable, 3.0)  # lost-scope
    with v1.colocate_with(variable), tf.device("/GPU:1"):
        lost = tf.add(1.0, 2.0)  # lost-scope
    session.run([assign, lost])
"""

WELL = """
import os

import tensorflow as tf

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"  # too late to hide anything
tf.config.list_physical_devices()
tf.debugging.set_log_device_placement(True)
from tensorflow import keras
from tensorflow.compat import v1

with tf.device("/GPU:1"):
    tf.constant(2.0)

numbers = tf.data.Dataset.from_tensor_slices(tf.ones([4, 2, 2]))


def multiply(x):
    with tf.device("/GPU:0"):
        return tf.matmul(x, x)


products = numbers.map(multiply)
with tf.device("/GPU:1"):
    layer = keras.layers.Dense(3)
    layer.build((None, 2))
    inputs = keras.Input((2,))
    model = keras.Model(inputs, keras.layers.Dense(3)(inputs))


@tf.function
def step(x):
    with tf.device("/GPU:1"):
        return layer(x), model(x), tf.matmul(x, x)


step(tf.ones([2, 2]))

with tf.Graph().as_default(), v1.Session() as session:
    with tf.device("/GPU:0"):
        variable = v1.Variable(1.0, use_resource=True)
        assign = v1.assign(variable, 3.0)
    with tf.device("/GPU:1"):
        kept = tf.add(1.0, 2.0)
    session.run([assign, kept])
"""


@pytest.fixture
def found(forked, tmp_path, monkeypatch, capfd):
    """Return a function that returns (rule, line) of each warning, the notes, and how the command ended."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL", raising=False)

    def run(script, *words):
        Path("model.py").write_text(script)
        status = main(["doctor", "model.py", "--sarif", "log.sarif", *words])
        (log,) = json.loads(Path("log.sarif").read_text())["runs"]
        warnings = {
            (r["ruleId"], r["locations"][0]["physicalLocation"].get("region", {}).get("startLine"))
            for r in log["results"]
            if r["level"] != "note"
        }
        notes = {r["ruleId"] for r in log["results"] if r["level"] == "note"}
        return warnings, notes, SimpleNamespace(returncode=status, **capfd.readouterr()._asdict())

    return run


def test_each_silent_failure_is_found_at_its_line(found):
    warnings, notes, done = found(SICK, "--devices", "cpu:1,gpu:2")
    lines = enumerate(SICK.splitlines(), start=1)
    assert warnings == {(what[1], number) for number, line in lines if (what := re.search(r"  # ([\w-]+)$", line))}
    assert notes == {"host-memory"}
    assert done.returncode == 1
    assert "why: The first op, and tf.config.list_logical_devices too" in done.out


def test_nothing_is_found_in_the_same_program_done_rightly(found):
    warnings, notes, done = found(WELL, "--devices", "cpu:1,gpu:2")
    assert (warnings, notes, done.returncode) == (set(), set(), 0), done.out + done.err


# TensorFlow's documentation of MirroredStrategy: Keras, and a loop of one's own.
MIRRORED = """
import numpy as np
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1, kernel_regularizer="l2")])
    model.compile(loss="mse", optimizer="sgd")
    optimizer = tf.keras.optimizers.SGD()
    loss_object = tf.keras.losses.BinaryCrossentropy(from_logits=True, reduction=None)
dataset = tf.data.Dataset.from_tensors(([1.0], [1.0])).repeat(40).batch(4)
model.fit(dataset, epochs=2, verbose=0)
model.evaluate(dataset, verbose=0)
model.fit(np.ones((8, 1)), np.ones((8, 1)), batch_size=4, verbose=0)


def train_step(features, labels):
    with tf.GradientTape() as tape:
        loss = tf.nn.compute_average_loss(loss_object(labels, model(features, training=True)))
        loss += tf.nn.scale_regularization_loss(tf.add_n(model.losses))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


@tf.function
def distributed_train_step(features, labels):
    losses = strategy.run(train_step, args=(features, labels))
    return strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)


for batch in strategy.experimental_distribute_dataset(dataset):
    distributed_train_step(*batch)
"""


def test_nothing_is_found_in_the_example_of_mirrored_strategy(found):
    warnings, notes, done = found(MIRRORED, "--devices", "cpu:1,gpu:2")
    assert (warnings, notes, done.returncode) == (set(), {"host-memory"}, 0), done.out + done.err
