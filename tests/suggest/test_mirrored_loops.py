"""A replica on each GPU for a training loop of one's own: which loops are taken, what the patch makes of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from simplace.suggestions.edits import apply_edits
from simplace.suggestions.evidence import Evidence
from simplace.suggestions.mirrored_changes import list_busy_gpus
from simplace.suggestions.mirrored_loops import can_hold_strategy, find_mirrored_loops, write_strategy
from simplace.suggestions.source_file import SourceFile
from simplace.suggestions.training_loops import read_loop
from simplace.suggestions.trial import Trial
from tests.suggest.observed import observe

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
with strategy.scope():
    hidden = tf.keras.layers.Dense(512, activation="relu")
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
    source = SourceFile("model.py", PROGRAM.replace(old, new))
    return can_hold_strategy(source) and read_loop(source, "train_step") is not None


def test_the_loop_of_the_guide_is_taken() -> None:
    assert is_taken()
    assert is_taken("    return loss\n", "")
    assert is_taken("for number, (x, y) in enumerate(dataset)", "for x, y in dataset")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("loss = loss_fn(y, model(x, training=True))", "loss = tf.reduce_sum(tf.square(model(x)))"),
        ("loss = loss_fn(y, model(x, training=True))", "loss = tf.reduce_mean(tf.square(model(x)), axis=0)"),
        ("loss = loss_fn(y, model(x, training=True))", "loss = make_loss(y, model(x))"),
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
        "a sum", "a mean of each row", "a loss of its own", "a sum by Keras", "a loss with more",
        "predictions returned", "two results", "an unknown optimizer", "no function", "compiled by XLA",
        "an element used elsewhere", "a part of an element", "called elsewhere", "names taken",
    ],
)  # fmt: skip
def test_a_loop_of_another_shape_is_left_alone(old: str, new: str) -> None:
    assert not is_taken(old, new)


def try_loop(text: str) -> Trial:
    observed = observe(text, gpu="t4", program="train_step")
    (change,) = find_mirrored_loops(observed.evidence)
    return observed.attempt(change)


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
SETUP = """\
import tensorflow as tf

tf.keras.utils.set_random_seed(1)
features, labels = tf.random.normal([96, 16]), tf.random.uniform([96], maxval=4, dtype=tf.int32)
dataset = tf.data.Dataset.from_tensor_slices((features, labels)).batch(32)
"""
IN_MAIN = """\
def make_model():
    return tf.keras.Sequential([tf.keras.Input([16]), tf.keras.layers.Dense(8), tf.keras.layers.Dense(4)])


def main():
    model = make_model()
    optimizer = tf.keras.optimizers.SGD(0.1)
    loss_fn = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    accuracy = tf.keras.metrics.SparseCategoricalAccuracy()

    @tf.function
    def train_step(x, y):
        with tf.GradientTape() as tape:
            logits = model(x, training=True)
            loss = loss_fn(y, logits)
        gradients = tape.gradient(loss, model.trainable_weights)
        optimizer.apply_gradients(zip(gradients, model.trainable_weights))
        accuracy.update_state(y, logits)
        return loss

    for epoch in range(2):
        for x, y in dataset:
            loss = train_step(x, y)
        print(float(loss), float(accuracy.result()))
        accuracy.reset_state()


main()
"""
A_METHOD = """\
class Trainer:
    def __init__(self):
        self.rate = 0.1
        self.model = tf.keras.Sequential([tf.keras.Input([16]), tf.keras.layers.Dense(4)])
        self.optimizer = tf.keras.optimizers.Adam(self.rate)
        self.loss_fn = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function
    def train_step(self, x, y):
        with tf.GradientTape() as tape:
            loss = self.loss_fn(y, self.model(x, training=True))
        gradients = tape.gradient(loss, self.model.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.model.trainable_variables))
        return loss


def fit(trainer, data):
    for _ in range(2):
        for x, y in data:
            loss = trainer.train_step(x, y)
        print(float(loss))


fit(Trainer(), dataset)
"""
A_MEAN = """\
model = tf.keras.Sequential([tf.keras.Input([16]), tf.keras.layers.Dense(4)])
optimizer = tf.keras.optimizers.Adam(0.01)


def compute_loss(real, logits):
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=real, logits=logits)
    return tf.reduce_mean(losses)


@tf.function
def train_step(batch):
    x, y = batch
    with tf.GradientTape() as tape:
        loss = compute_loss(y, model(x))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


def train(data, epochs):
    for _ in range(epochs):
        for batch in data:
            loss = train_step(batch)
        print(float(loss))


train(dataset, 2)
"""
OF_LAYERS = """\
inputs = tf.keras.Input([16])
hidden = tf.keras.layers.Dense(8, activation="relu")(inputs)
hidden = tf.keras.layers.Dense(8)(hidden)
seen = tf.keras.metrics.Mean()
model = tf.keras.Model(inputs, tf.keras.layers.Dense(4)(hidden))
optimizer = tf.keras.optimizers.Adam(0.01)


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        logits = model(x)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    seen.update_state(loss)


for epoch in range(2):
    for x, y in dataset:
        train_step(x, y)
    print(float(tf.reduce_sum(model(features))))
"""
A_MODULE = """\
class Net(tf.Module):
    def __init__(self):
        super().__init__()
        self.w = tf.Variable(tf.random.normal([16, 4]))
        self.b = tf.Variable(tf.zeros([4]))
        self.optimizer = tf.keras.optimizers.Adam(0.01)

    def __call__(self, x):
        return tf.matmul(x, self.w) + self.b

    @tf.function
    def train_step(self, x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(
                tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=self(x))
            )
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        return loss


net = Net()
for _ in range(2):
    for x, y in dataset:
        loss = net.train_step(x, y)
    print(float(loss))
"""


def run_on_cpus(folder: Path, text: str) -> list[float]:
    """Run a program on two CPU devices; return the numbers that it prints."""
    Path(folder, "model.py").write_text(WITH_CPUS + text)
    done = subprocess.run([sys.executable, "model.py"], cwd=folder, capture_output=True, text=True, check=True)
    return [float(word) for line in done.stdout.splitlines() for word in line.split()]


@pytest.mark.tf
@pytest.mark.parametrize(
    ("text", "added"),
    [
        (PROGRAM, "    optimizer.build(model.trainable_variables)\n"),
        (SETUP + IN_MAIN, "        optimizer.build(model.trainable_weights)\n"),
        (SETUP + A_METHOD, "            self.optimizer.build(self.model.trainable_variables)\n"),
        (SETUP + A_MEAN, "        loss /= strategy.num_replicas_in_sync\n"),
        (SETUP + OF_LAYERS, "with strategy.scope():\n    inputs = tf.keras.Input([16])\n"),
        (SETUP + A_MODULE, "            loss /= strategy.num_replicas_in_sync\n"),
    ],
    ids=["the guide's", "in main, with a metric", "a method", "a mean by a function", "a model of layers", "a module"],
)
def test_the_patch_trains_to_the_same_values(text: str, added: str, tmp_path: Path) -> None:
    source = SourceFile("model.py", text)
    loop = read_loop(source, "train_step")
    assert loop is not None
    patched = apply_edits(source, write_strategy(source, loop))
    assert patched.count(added) == 1
    said = [run_on_cpus(tmp_path, one.replace("MirroredStrategy()", 'MirroredStrategy(["/CPU:0", "/CPU:1"])'))
            for one in (text, patched)]  # fmt: skip
    assert said[0] == pytest.approx(said[1], rel=1e-4)
    assert len(said[0]) > 1
