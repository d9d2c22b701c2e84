"""A pin predicts what TensorFlow does with a program that really requests the device."""

from __future__ import annotations

from pathlib import Path

import pytest

import simplace
from simplace.changes.what_if import read_pin, suppose_changes

pytestmark = [pytest.mark.tf, pytest.mark.usefixtures("forked")]

STEP = """
import tensorflow as tf

with tf.device("/GPU:0"):
    w = tf.Variable(tf.ones([4, 4]), name="w")

@tf.function
def inner(x):
    return tf.exp(x, name="inner_exp")

@tf.function
def step(x):
    with tf.device("DEVICE"):
        y = tf.matmul(x, w, name="product")
    n = tf.shape(y, name="extent")
    z = inner(tf.identity(y, name="same"))
    return tf.reduce_sum(z) + tf.cast(n[0], tf.float32), y

step(tf.ones([2, 4]))
"""
SESSION = """
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
with tf.device("DEVICE"):
    a = tf.get_variable("a", shape=[2], initializer=tf.zeros_initializer())
b = tf.exp(a, name="b")
with tf.Session() as session:
    session.run(a.initializer)
    session.run(b)
"""


@pytest.mark.parametrize(
    ("text", "program", "pins"),
    [(STEP, "step", ["product=CPU:0"]), (STEP, "step", ["product=GPU:1"]), (SESSION, "Session.run", ["a*=CPU:0"])],
    ids=["result follows", "other GPU", "later runs of a session"],
)
def test_a_pin_predicts_the_real_request(text: str, program: str, pins: list[str], tmp_path: Path) -> None:
    device = read_pin(pins[0]).device
    before, after = tmp_path / "before.py", tmp_path / "after.py"
    before.write_text(text.replace("DEVICE", "/GPU:0"))
    after.write_text(text.replace("DEVICE", str(device)))
    first, real = (simplace.place(str(file), devices="cpu:1,gpu:2") for file in (before, after))
    supposed = suppose_changes(first, [read_pin(pin) for pin in pins])
    assert real.agrees
    for one, other in zip(supposed.programs, real.programs, strict=True):
        assert one.name == other.name
        assert {n.name: n.device for n in one.placement} == {n.name: n.device for n in other.placement}
