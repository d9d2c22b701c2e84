"""Measure what `simplace.watch` adds to a training of 100 steps, from tracing to the line at the end.

Run `python -m benchmarks.watching` in the repository; benchmarks/README.md says what is measured.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from viz import Column, Table, to_text

_FRAME = """
import time
from contextlib import nullcontext
import tensorflow as tf
import simplace
tf.keras.utils.set_random_seed(1)
{program}
watching = simplace.watch() if {watched} else nullcontext()
began = time.process_time()
with watching:
    train(100)
print("WHOLE", time.process_time() - began)
with watching:
    train(1)
    began = time.process_time()
    train(50)
    print("LATER", time.process_time() - began)
"""
_PROGRAMS = {
    "Keras, convolutions": """
from tensorflow.keras import layers
blocks = [each for _ in range(4) for each in (layers.Conv2D(16, 3), layers.BatchNormalization(), layers.ReLU())]
model = tf.keras.Sequential([tf.keras.Input((32, 32, 3)), *blocks, layers.Flatten(), layers.Dense(10)])
model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
data = tf.data.Dataset.from_tensors((tf.random.normal([32, 32, 32, 3]), tf.zeros([32], tf.int32))).repeat()
def train(steps):
    model.fit(data, steps_per_epoch=steps, verbose=0)
""",
    "Keras, 12 layers of attention": """
from tensorflow.keras import layers
x = inputs = tf.keras.Input((32, 64))
for _ in range(12):
    x = layers.LayerNormalization()(x + layers.MultiHeadAttention(4, 16)(x, x))
    x = x + layers.Dense(64)(layers.Dense(128, activation="relu")(x))
model = tf.keras.Model(inputs, layers.Dense(10)(layers.GlobalAveragePooling1D()(x)))
model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
data = tf.data.Dataset.from_tensors((tf.random.normal([32, 32, 64]), tf.zeros([32], tf.int32))).repeat()
def train(steps):
    model.fit(data, steps_per_epoch=steps, verbose=0)
""",
    "tf.function, dense": """
weights = [tf.Variable(tf.random.normal([512, 512])) for _ in range(8)]
x = tf.random.normal([256, 512])
@tf.function
def step(x):
    with tf.GradientTape() as tape:
        y = x
        for weight in weights:
            y = tf.tanh(y @ weight)
        loss = tf.reduce_sum(y)
    for weight, gradient in zip(weights, tape.gradient(loss, weights)):
        weight.assign_sub(0.01 * gradient)
    return loss
def train(steps):
    for _ in range(steps):
        step(x)
""",
    "Keras, run eagerly": """
from tensorflow.keras import layers
model = tf.keras.Sequential([tf.keras.Input((64,)), *[layers.Dense(64, activation="relu") for _ in range(6)]])
model.compile("adam", "mse", run_eagerly=True)
data = tf.data.Dataset.from_tensors((tf.random.normal([32, 64]), tf.zeros([32, 64]))).repeat()
def train(steps):
    model.fit(data, steps_per_epoch=steps, verbose=0)
""",
}
_COLUMNS = (
    Column("training"),
    *(Column(name, "right") for name in ("100 steps", "watched", "ratio", "50 later", "watched", "ratio")),
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run each training with and without, in turns and in fresh processes, and print the table."""
    options = _parser().parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package comes with its bytecode
        os.environ["PYTHONPYCACHEPREFIX"] = folder
        _run("def train(steps): tf.function(tf.identity)(1.0)", watched=True)
        rows = [(name, *_measure(_PROGRAMS[name], options.repeats)) for name in options.programs or _PROGRAMS]
    print(to_text(Table(_COLUMNS, tuple(rows))))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", nargs="+", choices=sorted(_PROGRAMS), help="only these")
    parser.add_argument(
        "--repeats", type=int, default=5, help="pairs of runs, of which the best of each kind counts (%(default)s)"
    )
    return parser


def _measure(program: str, repeats: int) -> tuple[str, ...]:
    pairs = [(_run(program, watched=False), _run(program, watched=True)) for _ in range(repeats)]
    cells: list[str] = []
    for what in (0, 1):
        plain, watched = min(a[what] for a, _ in pairs), min(b[what] for _, b in pairs)
        cells += [f"{plain:.2f} s", f"{watched:.2f} s", f"{watched / plain:.3f}"]
    return tuple(cells)


def _run(program: str, *, watched: bool) -> tuple[float, float]:
    """Return the processor time of the training from its first step on, and that of its later steps."""
    root = Path(__file__).resolve().parents[1]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": str(root)}
    text = _FRAME.format(program=program, watched=watched)
    ran = subprocess.run([sys.executable, "-c", text], env=environment, capture_output=True, text=True, check=True)
    found = dict(line.split() for line in ran.stdout.splitlines() if line.startswith(("WHOLE", "LATER")))
    return float(found["WHOLE"]), float(found["LATER"])


if __name__ == "__main__":
    main()
