"""Programs that the smallest limits are judged by, written when the replay of what is before a step was finished."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import tensorflow as tf
from memory_models import Step, squared, train
from memory_models_unseen import descend, variable

layers = tf.keras.layers


def factorized(batch: int) -> Step:
    """Factorize a matrix of ratings: rows of two tables, a bias, weight decay."""
    people, things, bias = weights = [variable(3000, 32), variable(2000, 32), variable(2000)]

    def loss_of(person: Any, thing: Any, rating: Any) -> Any:
        a, b = tf.gather(people, person), tf.gather(things, thing)
        found = tf.reduce_sum(a * b, 1) + tf.gather(bias, thing)
        decay = 1e-4 * tf.add_n([tf.reduce_sum(tf.square(weight)) for weight in weights])
        return tf.reduce_mean(tf.square(found - rating)) + decay

    ids = tf.random.uniform([batch], 0, 2000, tf.int32)
    return descend(weights, loss_of, (ids, ids, tf.random.normal([batch])))


def dilated(batch: int) -> Step:
    """Train dilated convolutions over time with batch normalization and Nesterov's momentum."""
    inputs = tf.keras.Input([64, 24])
    x = inputs
    for rate in (1, 2, 4):
        y = layers.BatchNormalization()(layers.Conv1D(32, 3, padding="same", dilation_rate=rate)(x))
        x = layers.Concatenate()([x, layers.Activation("relu")(y)])
    model = tf.keras.Model(inputs, layers.Dense(6)(layers.GlobalMaxPooling1D()(x)))
    optimizer = tf.keras.optimizers.SGD(0.05, momentum=0.9, nesterov=True)
    return train(model, tf.random.normal([batch, 64, 24]), tf.zeros([batch, 6]), optimizer, squared)


def mixture(batch: int) -> Step:
    """Train a mixture of eight Gaussians whose parameters a network gives, with Adam."""
    model = tf.keras.Sequential([layers.Dense(256, "elu"), layers.Dense(256, "elu"), layers.Dense(24)])

    def loss_of(y: Any, found: Any) -> Any:
        share, mean, spread = tf.split(found, 3, axis=1)
        error = tf.square((y - mean) * tf.exp(-spread))
        return -tf.reduce_logsumexp(tf.nn.log_softmax(share) - spread - 0.5 * error, 1)

    x = tf.random.normal([batch, 96])
    return train(model, x, tf.random.normal([batch, 1]), tf.keras.optimizers.Adam(), loss_of)


def lookup(batch: int) -> Step:
    """Compare vectors with a large table that is a constant of the graph, and return the nearest."""
    table = tf.random.normal([4000, 128])

    @tf.function
    def step(x: Any) -> Any:
        near = tf.math.top_k(tf.matmul(tf.math.l2_normalize(x, 1), table, transpose_b=True), 8)
        return tf.reduce_mean(tf.gather(table, near.indices), 1), tf.nn.softmax(near.values)

    return step, (tf.random.normal([batch, 128]),)


def highway(batch: int) -> Step:
    """Train gated layers that let some of their input through, with clipped gradients and Adagrad."""
    gates, weights = [variable(160, 160) for _ in range(4)], [variable(160, 160) for _ in range(4)]
    last = variable(160, 5)
    sums = [tf.Variable(tf.ones_like(weight)) for weight in (*gates, *weights, last)]

    @tf.function
    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            for gate, weight in zip(gates, weights, strict=True):
                share = tf.sigmoid(x @ gate)
                x = share * tf.nn.relu(x @ weight) + (1 - share) * x
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, x @ last))
        every = [*gates, *weights, last]
        gradients, _ = tf.clip_by_global_norm(tape.gradient(loss, every), 1.0)
        for weight, total, gradient in zip(every, sums, gradients, strict=True):
            total.assign_add(tf.square(gradient))
            weight.assign_sub(0.1 * gradient * tf.math.rsqrt(total))
        return loss

    return step, (tf.random.normal([batch, 160]), tf.random.uniform([batch], 0, 5, tf.int32))


STEPS: dict[str, Callable[[int], Step]] = {
    made.__name__: made for made in (factorized, dilated, mixture, lookup, highway)
}

if __name__ == "__main__":
    step, arguments = STEPS[sys.argv[1]](int(sys.argv[2]))
    step(*arguments)
