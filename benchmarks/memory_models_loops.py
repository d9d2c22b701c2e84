"""Programs whose loops keep values for a gradient, which smallest limits are judged by since lists are followed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import tensorflow as tf
from memory_models import Step, squared, train
from memory_models_unseen import descend, variable

layers = tf.keras.layers


def looped(batch: int) -> Step:
    """Train a recurrent layer written with tf.while_loop, over 40 steps."""
    into, state, last = weights = [variable(24, 96), variable(96, 96), variable(96, 3)]

    def loss_of(x: Any, y: Any) -> Any:
        steps = tf.transpose(x, [1, 0, 2])

        def advance(i: Any, h: Any) -> tuple[Any, Any]:
            return i + 1, tf.tanh(steps[i] @ into + h @ state)

        _, h = tf.while_loop(lambda i, _: i < 40, advance, (0, tf.zeros([tf.shape(x)[0], 96])))
        return tf.reduce_mean(tf.square(h @ last - y))

    return descend(weights, loss_of, (tf.random.normal([batch, 40, 24]), tf.zeros([batch, 3])))


def sequence(batch: int) -> Step:
    """Train a Keras LSTM with dropout of its state, which runs as a loop."""
    model = tf.keras.Sequential([layers.LSTM(64, recurrent_dropout=0.2), layers.Dense(4)])
    x = tf.random.normal([batch, 30, 32])
    return train(model, x, tf.zeros([batch, 4]), tf.keras.optimizers.Adam(), squared)


def scanned(batch: int) -> Step:
    """Train a filter whose states tf.scan keeps, all of which are results."""
    gate, weight, last = weights = [variable(48, 48), variable(48, 48), variable(48, 48)]

    def loss_of(x: Any, y: Any) -> Any:
        def advance(h: Any, value: Any) -> Any:
            share = tf.sigmoid(value @ gate)
            return share * h + (1 - share) * tf.nn.relu(value @ weight)

        states = tf.scan(advance, tf.transpose(x, [1, 0, 2]), tf.zeros([tf.shape(x)[0], 48]))
        return tf.reduce_mean(tf.square(states @ last - y))

    return descend(weights, loss_of, (tf.random.normal([batch, 25, 48]), tf.zeros([25, batch, 48])))


def mapped(batch: int) -> Step:
    """Train weights by a loss that tf.map_fn computes row by row."""
    weight, last = weights = [variable(40, 200), variable(200, 200)]

    def loss_of(x: Any, y: Any) -> Any:
        def compute(row: Any) -> Any:
            made = tf.nn.relu(tf.linalg.matvec(weight, row, transpose_a=True))
            return tf.nn.log_softmax(tf.linalg.matvec(last, made))

        return -tf.reduce_mean(tf.reduce_sum(y * tf.map_fn(compute, x), 1))

    return descend(weights, loss_of, (tf.random.normal([batch, 40]), tf.ones([batch, 200]) / 200))


STEPS: dict[str, Callable[[int], Step]] = {made.__name__: made for made in (looped, sequence, scanned, mapped)}

if __name__ == "__main__":
    step, arguments = STEPS[sys.argv[1]](int(sys.argv[2]))
    step(*arguments)
