"""Programs that the predicted memory of a step is judged by: `STEPS` maps names to functions of a batch.

Each returns the step and its arguments; the arguments of this script are a name and a batch, of which one step runs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import tensorflow as tf

Step = tuple[Callable[..., Any], tuple[Any, ...]]
layers = tf.keras.layers


def train(model: Any, x: Any, y: Any, optimizer: Any, loss_of: Callable[[Any, Any], Any]) -> Step:
    """Make a step that trains a Keras model."""
    model(x)
    optimizer.build(model.trainable_variables)

    @tf.function
    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(loss_of(y, model(x, training=True)))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))  # noqa: B905
        return loss

    return step, (x, y)


def squared(y: Any, found: Any) -> Any:
    """Return the squared differences."""
    return tf.square(found - y)


def mlp(batch: int) -> Step:
    """Train three dense layers with momentum."""
    model = tf.keras.Sequential([layers.Dense(500, "relu"), layers.Dense(500, "relu"), layers.Dense(10)])
    optimizer = tf.keras.optimizers.SGD(0.01, momentum=0.9)
    return train(model, tf.random.normal([batch, 300]), tf.zeros([batch, 10]), optimizer, squared)


def normalized(batch: int) -> Step:
    """Train dense layers with batch and layer normalization, dropout and Adam."""
    model = tf.keras.Sequential([
        layers.Dense(400, "gelu"), layers.BatchNormalization(), layers.Dropout(0.2), layers.Dense(400, "swish"),
        layers.LayerNormalization(), layers.Dense(10),
    ])  # fmt: skip
    return train(model, tf.random.normal([batch, 300]), tf.zeros([batch, 10]), tf.keras.optimizers.Adam(), squared)


def autoencoder(batch: int) -> Step:
    """Train an autoencoder with Adam."""
    sizes = (512, 128, 32, 128, 512, 784)
    model = tf.keras.Sequential([layers.Dense(size, "tanh") for size in sizes])
    x = tf.random.normal([batch, 784])
    return train(model, x, x, tf.keras.optimizers.Adam(), squared)


def convolutions(batch: int) -> Step:
    """Train a small image classifier."""
    model = tf.keras.Sequential([
        layers.Conv2D(16, 3, activation="relu"), layers.MaxPooling2D(), layers.Conv2D(32, 3, activation="relu"),
        layers.Flatten(), layers.Dense(10),
    ])  # fmt: skip
    x = tf.random.normal([batch, 32, 32, 3])
    return train(model, x, tf.zeros([batch, 10]), tf.keras.optimizers.SGD(0.1), squared)


def recurrent(batch: int) -> Step:
    """Train an unrolled recurrent layer."""
    model = tf.keras.Sequential([layers.SimpleRNN(128, unroll=True), layers.Dense(10)])
    x = tf.random.normal([batch, 12, 64])
    return train(model, x, tf.zeros([batch, 10]), tf.keras.optimizers.SGD(0.1), squared)


def embedding(batch: int) -> Step:
    """Train an embedding by rows."""
    model = tf.keras.Sequential([layers.Embedding(5000, 64), layers.GlobalAveragePooling1D(), layers.Dense(10)])
    x = tf.random.uniform([batch, 20], 0, 5000, tf.int32)
    return train(model, x, tf.zeros([batch, 10]), tf.keras.optimizers.SGD(0.1), squared)


def attention(batch: int) -> Step:
    """Train self-attention written with products."""
    width, length = 128, 32
    weights = [tf.Variable(tf.random.normal([width, width]) / 12) for _ in range(4)]

    @tf.function
    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            flat = tf.reshape(x, [-1, width])
            q, k, v = (tf.reshape(flat @ weight, [-1, length, width]) for weight in weights[:3])
            mixed = tf.matmul(tf.nn.softmax(tf.matmul(q, k, transpose_b=True) / 12.0), v)
            loss = tf.reduce_mean(tf.square(tf.reshape(mixed, [-1, width]) @ weights[3] - tf.reshape(y, [-1, width])))
        for weight, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
            weight.assign_sub(0.1 * gradient)
        return loss

    return step, (tf.random.normal([batch, length, width]), tf.zeros([batch, length, width]))


def residual(batch: int) -> Step:
    """Train residual dense blocks with RMSprop."""
    inputs = tf.keras.Input([256])
    x = inputs
    for _ in range(6):
        x = layers.Add()([x, layers.Dense(256, "relu")(layers.Dense(256, "relu")(x))])
    model = tf.keras.Model(inputs, layers.Dense(10)(x))
    x = tf.random.normal([batch, 256])
    return train(model, x, tf.zeros([batch, 10]), tf.keras.optimizers.RMSprop(), squared)


def inference(batch: int) -> Step:
    """Run a deep network without training it."""
    weights = [tf.Variable(tf.random.normal([512, 512]) / 22) for _ in range(8)]

    @tf.function
    def step(x: Any) -> Any:
        for weight in weights:
            x = tf.nn.relu(x @ weight)
        return tf.math.top_k(x, 5).values

    return step, (tf.random.normal([batch, 512]),)


def statistics(batch: int) -> Step:
    """Compute moments, quantiles and a histogram of columns: no products, no variables."""

    @tf.function
    def step(x: Any) -> Any:
        mean, variance = tf.nn.moments(x, 0)
        scaled = (x - mean) * tf.math.rsqrt(variance + 1e-3)
        ordered = tf.sort(scaled, axis=0)
        return ordered[batch // 2], tf.reduce_max(tf.abs(scaled), 1), tf.math.cumsum(scaled, 1)

    return step, (tf.random.normal([batch, 600]),)


STEPS: dict[str, Callable[[int], Step]] = {
    made.__name__: made
    for made in (
        mlp, normalized, autoencoder, convolutions, recurrent, embedding, attention, residual, inference, statistics,
    )
}  # fmt: skip

if __name__ == "__main__":
    step, arguments = STEPS[sys.argv[1]](int(sys.argv[2]))
    step(*arguments)
