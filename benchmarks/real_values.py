"""Measure what a program's steps take under `simplace show`, as multiples of what they take under plain Python.

Run `python -m benchmarks.real_values` in the repository; benchmarks/README.md says what is measured.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from viz import Column, Table, to_text

_TIMER = """
import time, resource
def measure(run, steps):
    run()
    for step in range(steps):
        wall, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
        run()
        now = resource.getrusage(resource.RUSAGE_SELF)
        processor = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
        print("STEP", time.perf_counter() - wall, processor, flush=True)
"""
_PROGRAMS = {
    "convolutions": """
import tensorflow as tf
layers = [tf.keras.layers.Conv2D(64, 3, activation="relu") for _ in range(5)]
model = tf.keras.Sequential([*layers, tf.keras.layers.Flatten(), tf.keras.layers.Dense(10)])
optimizer, x, y = tf.keras.optimizers.Adam(), tf.random.normal([48, 48, 48, 3]), tf.zeros([48], tf.int32)
@tf.function
def step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.keras.losses.sparse_categorical_crossentropy(y, model(x), from_logits=True))
    variables = model.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    return loss
measure(lambda: float(step(x, y)), STEPS)
""",
    "200 MB of variables": """
import tensorflow as tf
variables = [tf.Variable(tf.random.normal([1024, 1024])) for _ in range(50)]
x = tf.random.normal([256, 1024])
@tf.function
def step(x):
    with tf.GradientTape() as tape:
        y = x
        for variable in variables:
            y = tf.tanh(y @ variable)
        loss = tf.reduce_sum(y)
    for variable, gradient in zip(variables, tape.gradient(loss, variables)):
        variable.assign_sub(0.01 * gradient)
    return loss
measure(lambda: float(step(x)), STEPS)
""",
    "8 layers of attention": """
import tensorflow as tf
from tensorflow.keras import layers
x = inputs = tf.keras.Input((128, 256))
for _ in range(8):
    x = layers.LayerNormalization()(x + layers.MultiHeadAttention(8, 32)(x, x))
    x = x + layers.Dense(256)(layers.Dense(1024, activation="relu")(x))
model = tf.keras.Model(inputs, layers.Dense(10)(layers.GlobalAveragePooling1D()(x)))
optimizer, x, y = tf.keras.optimizers.Adam(), tf.random.normal([8, 128, 256]), tf.zeros([8], tf.int32)
@tf.function
def step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.keras.losses.sparse_categorical_crossentropy(y, model(x), from_logits=True))
    variables = model.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    return loss
measure(lambda: float(step(x, y)), STEPS)
""",
    "eager ops": """
import tensorflow as tf
a, b = tf.random.normal([64, 64]), tf.Variable(tf.zeros([64, 64]))
tf.function(tf.identity)(a)
def loop():
    x = a
    for _ in range(500):
        x = tf.tanh(x @ a)
        b.assign_add(x)
    return float(tf.reduce_sum(b))
measure(loop, STEPS)
""",
}
_COLUMNS = (
    Column("program"),
    Column("devices"),
    *(Column(name, "right") for name in ("plain", "simplace", "ratio", "processor ratio")),
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run each program both ways, print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.real_values", description=__doc__)
    parser.add_argument("--steps", type=int, default=5, metavar="N", help="steps of a run, after a first one")
    parser.add_argument("--only", default="", metavar="TEXT", help="only programs whose name holds TEXT")
    parser.add_argument("--devices", nargs="+", default=["cpu:1,gpu:1", "cpu:1,gpu:2"], metavar="SET")
    parser.add_argument("--repeats", type=int, default=1, metavar="N", help="runs in turns, of which the best counts")
    options = parser.parse_args(arguments)
    rows = [
        row
        for name, text in _PROGRAMS.items()
        if options.only in name
        for row in _measure(name, text, options.steps, options.devices, options.repeats)
    ]
    print(to_text(Table(_COLUMNS, tuple(rows))))


def _measure(name: str, text: str, steps: int, sets: Sequence[str], repeats: int) -> Iterator[tuple[str, ...]]:
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "program.py")
        script.write_text(_TIMER + text.replace("STEPS", str(steps)))
        shown = [sys.executable, "-m", "simplace", "show", str(script), "--calls", "all", "--devices"]
        runs = [[_run(each) for each in _list_commands(script, shown, sets)] for _ in range(repeats)]
    plain, *ours = (tuple(map(min, zip(*of_command, strict=True))) for of_command in zip(*runs, strict=True))
    for devices, found in zip(sets, ours, strict=True):
        ratios = [f"{one / other:.2f}" for one, other in zip(found, plain, strict=True)]
        yield (name, devices, f"{plain[0]:.3f} s", f"{found[0]:.3f} s", *ratios)


def _list_commands(script: Path, shown: list[str], sets: Sequence[str]) -> list[list[str]]:
    return [[sys.executable, str(script)], *([*shown, devices] for devices in sets)]


def _run(command: list[str]) -> tuple[float, float]:
    """Run a program; return the median of its steps, in seconds and in seconds of the processor."""
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    steps = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("STEP ")]
    wall, processor = zip(*(map(float, step) for step in steps), strict=True)
    return median(wall), median(processor)


if __name__ == "__main__":
    main()
