"""The five programs that the accuracy of the schedule simulation is judged by.

The only argument is the size of their matrices.
"""

from __future__ import annotations

import random
import sys
from typing import Any

import tensorflow as tf

WIDTH, DEPTH = 5, 10
SIDE = int(sys.argv[1]) if len(sys.argv) > 1 else 384
ROWS = (SIDE // 4, SIDE // 2, SIDE, 2 * SIDE, 3 * SIDE)


def layers(rows: list[int]) -> Any:
    """Multiply layer by layer; each product has two random ones before it, and none is used more than four times."""
    chance = random.Random(0)
    weights = [
        tf.identity(w) for w in [tf.identity(tf.fill([SIDE, SIDE], 1 / SIDE)) for _ in range(2)] for _ in range(5)
    ]
    before = [tf.fill([rows[i % len(rows)], SIDE], 0.5) for i in range(WIDTH)]
    for layer in range(DEPTH):
        first, second = chance.sample(before, WIDTH), chance.sample(before, WIDTH)
        now = []
        for i, (one, other) in enumerate(zip(first, second, strict=True)):
            with tf.control_dependencies([other]):
                now.append(tf.matmul(one, weights[(layer * WIDTH + i) % len(weights)]))
        before = now
    return tf.add_n([tf.reduce_sum(one) for one in before])


@tf.function
def even() -> Any:
    """Multiply equal matrices."""
    return layers([SIDE])


@tf.function
def uneven() -> Any:
    """Multiply matrices of five heights."""
    return layers(list(ROWS))


@tf.function
def chain() -> Any:
    """Multiply in one long chain, beside many products that nothing else needs."""
    side = 2 * SIDE // 3
    value = tf.fill([side, side], 1 / side)
    starts = [tf.identity(value) for _ in range(6)]
    beside = [tf.matmul(starts[i % 5], starts[i % 5]) for i in range(20)]
    last = starts[5]
    for _ in range(20):
        last = tf.matmul(last, last)
    return last, tf.add_n(beside)


MODEL = tf.keras.Sequential([
    tf.keras.Input((28, 28, 1)), tf.keras.layers.Conv2D(16, 3, activation="relu"), tf.keras.layers.MaxPooling2D(),
    tf.keras.layers.Conv2D(32, 3, activation="relu"), tf.keras.layers.Flatten(),
    tf.keras.layers.Dense(64, activation="relu"), tf.keras.layers.Dense(10),
])  # fmt: skip


@tf.function
def cnn(images: Any, labels: Any) -> Any:
    """Train a small Keras CNN for a step."""
    with tf.GradientTape() as tape:
        losses = tf.keras.losses.sparse_categorical_crossentropy(labels, MODEL(images, training=True), from_logits=True)
        loss = tf.reduce_mean(losses)
    for variable, gradient in zip(
        MODEL.trainable_variables, tape.gradient(loss, MODEL.trainable_variables), strict=True
    ):
        variable.assign_sub(0.01 * gradient)
    return loss


KERNEL = tf.Variable(tf.random.normal([128, 256], stddev=0.1))
BIAS = tf.Variable(tf.zeros([256]))


@tf.function
def lstm(sequence: Any) -> Any:
    """Run an LSTM cell over 20 steps, in a loop."""

    def body(i: Any, state: Any, cell: Any, outputs: Any) -> Any:
        gates = tf.concat([sequence[i], state], 1) @ KERNEL + BIAS
        enter, forget, new, out = tf.split(gates, 4, 1)
        cell = tf.sigmoid(forget) * cell + tf.sigmoid(enter) * tf.tanh(new)
        state = tf.sigmoid(out) * tf.tanh(cell)
        return i + 1, state, cell, outputs.write(i, state)

    zeros = tf.zeros([8, 64])
    outputs = tf.TensorArray(tf.float32, 20, element_shape=[8, 64])
    *_, outputs = tf.while_loop(lambda i, *_: i < 20, body, (0, zeros, zeros, outputs))
    return outputs.stack()


even()
uneven()
chain()
cnn(tf.random.normal([32, 28, 28, 1]), tf.zeros([32], tf.int32))
lstm(tf.random.normal([20, 8, 64]))
