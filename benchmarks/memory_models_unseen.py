"""Programs that the predicted memory is judged by, written when it was finished: see memory_models.py."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf
from memory_models import Step, squared, train

layers = tf.keras.layers


def descend(weights: Sequence[Any], loss_of: Callable[..., Any], arguments: tuple[Any, ...]) -> Step:
    """Make a step of gradient descent on variables."""

    @tf.function
    def step(*arguments: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = loss_of(*arguments)
        for weight, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
            weight.assign_sub(0.1 * gradient)
        return loss

    return step, arguments


def variable(*shape: int) -> Any:
    """Make a variable of small random values."""
    return tf.Variable(tf.random.normal(shape, stddev=0.05))


def image_residual(batch: int) -> Step:
    """Train residual convolutions with batch normalization and momentum."""
    inputs = tf.keras.Input([24, 24, 3])
    x = layers.Conv2D(16, 3, padding="same")(inputs)
    for _ in range(2):
        y = layers.ReLU()(layers.BatchNormalization()(layers.Conv2D(16, 3, padding="same")(x)))
        x = layers.Add()([x, layers.BatchNormalization()(layers.Conv2D(16, 3, padding="same")(y))])
    model = tf.keras.Model(inputs, layers.Dense(10)(layers.GlobalAveragePooling2D()(x)))
    optimizer = tf.keras.optimizers.SGD(0.1, momentum=0.9)
    return train(model, tf.random.normal([batch, 24, 24, 3]), tf.zeros([batch, 10]), optimizer, squared)


def separable(batch: int) -> Step:
    """Train depthwise separable convolutions at a stride."""
    model = tf.keras.Sequential([
        layers.SeparableConv2D(24, 3, strides=2, activation="relu"), layers.SeparableConv2D(48, 3, activation="relu"),
        layers.GlobalAveragePooling2D(), layers.Dense(10),
    ])  # fmt: skip
    x = tf.random.normal([batch, 32, 32, 8])
    return train(model, x, tf.zeros([batch, 10]), tf.keras.optimizers.SGD(0.1), squared)


def segmentation(batch: int) -> Step:
    """Train a small U-net: down, up by a transposed convolution, joined to what came before."""
    inputs = tf.keras.Input([32, 32, 4])
    wide = layers.Conv2D(8, 3, padding="same", activation="relu")(inputs)
    deep = layers.Conv2D(16, 3, padding="same", activation="relu")(layers.MaxPooling2D()(wide))
    up = layers.Conv2DTranspose(8, 2, strides=2)(deep)
    model = tf.keras.Model(inputs, layers.Conv2D(1, 1)(layers.Concatenate()([wide, up])))
    x = tf.random.normal([batch, 32, 32, 4])
    return train(model, x, tf.zeros([batch, 32, 32, 1]), tf.keras.optimizers.Adam(), squared)


def transformer(batch: int) -> Step:
    """Train a block of Keras's attention, layer normalization and two dense layers."""
    inputs = tf.keras.Input([24, 96])
    x = layers.LayerNormalization()(inputs + layers.MultiHeadAttention(4, 24)(inputs, inputs))
    x = layers.LayerNormalization()(x + layers.Dense(96)(layers.Dense(192, "gelu")(x)))
    model = tf.keras.Model(inputs, layers.Dense(10)(layers.GlobalAveragePooling1D()(x)))
    x = tf.random.normal([batch, 24, 96])
    return train(model, x, tf.zeros([batch, 10]), tf.keras.optimizers.Adam(), squared)


def text_convolution(batch: int) -> Step:
    """Train convolutions over embedded words."""
    model = tf.keras.Sequential([
        layers.Embedding(4000, 48), layers.Conv1D(64, 5, activation="relu"), layers.GlobalMaxPooling1D(),
        layers.Dense(4),
    ])  # fmt: skip
    x = tf.random.uniform([batch, 40], 0, 4000, tf.int32)
    return train(model, x, tf.zeros([batch, 4]), tf.keras.optimizers.SGD(0.1), squared)


def gated(batch: int) -> Step:
    """Train an unrolled GRU."""
    model = tf.keras.Sequential([layers.GRU(96, unroll=True), layers.Dense(10)])
    x = tf.random.normal([batch, 10, 64])
    return train(model, x, tf.zeros([batch, 10]), tf.keras.optimizers.Adam(), squared)


def contrastive(batch: int) -> Step:
    """Train two towers whose examples are compared pair by pair: memory grows with the square of the batch."""
    left, right = variable(256, 128), variable(192, 128)

    def loss_of(x: Any, y: Any) -> Any:
        a, b = tf.math.l2_normalize(x @ left, 1), tf.math.l2_normalize(y @ right, 1)
        logits = tf.matmul(a, b, transpose_b=True) * 10.0
        labels = tf.range(tf.shape(x)[0])
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))

    return descend([left, right], loss_of, (tf.random.normal([batch, 256]), tf.random.normal([batch, 192])))


def variational(batch: int) -> Step:
    """Train a variational autoencoder: random noise, a divergence, two heads."""
    sizes = ((400, 200), (200, 20), (200, 20), (20, 200), (200, 400))
    encode, mean_of, spread_of, decode, paint = weights = [variable(*size) for size in sizes]

    def loss_of(x: Any) -> Any:
        hidden = tf.nn.relu(x @ encode)
        mean, spread = hidden @ mean_of, hidden @ spread_of
        code = mean + tf.random.normal(tf.shape(mean)) * tf.exp(0.5 * spread)
        painted = tf.nn.relu(code @ decode) @ paint
        error = tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(labels=x, logits=painted), 1)
        divergence = -0.5 * tf.reduce_sum(1 + spread - tf.square(mean) - tf.exp(spread), 1)
        return tf.reduce_mean(error + divergence)

    return descend(weights, loss_of, (tf.random.uniform([batch, 400]),))


def experts(batch: int) -> Step:
    """Train eight experts, of which each example takes the weighted sum."""
    gate, first, second = weights = [variable(128, 8), variable(8, 128, 96), variable(8, 96, 32)]

    def loss_of(x: Any, y: Any) -> Any:
        shares = tf.nn.softmax(x @ gate)
        hidden = tf.nn.relu(tf.matmul(tf.tile(x[None], [8, 1, 1]), first))
        found = tf.reduce_sum(tf.transpose(shares)[:, :, None] * tf.matmul(hidden, second), 0)
        return tf.reduce_mean(tf.square(found - y))

    return descend(weights, loss_of, (tf.random.normal([batch, 128]), tf.zeros([batch, 32])))


def clipped(batch: int) -> Step:
    """Train with Adagrad and gradients clipped by their common norm."""
    weights = [variable(256, 384), variable(384, 384), variable(384, 16)]
    slots = [tf.Variable(tf.ones_like(weight)) for weight in weights]

    @tf.function
    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            hidden = tf.nn.elu(tf.nn.elu(x @ weights[0]) @ weights[1])
            loss = tf.reduce_mean(tf.abs(hidden @ weights[2] - y))
        gradients, norm = tf.clip_by_global_norm(tape.gradient(loss, weights), 1.0)
        for weight, slot, gradient in zip(weights, slots, gradients, strict=True):
            slot.assign_add(tf.square(gradient))
            weight.assign_sub(0.1 * gradient * tf.math.rsqrt(slot))
        return loss, norm

    return step, (tf.random.normal([batch, 256]), tf.zeros([batch, 16]))


def accumulated(batch: int) -> Step:
    """Train on four parts of a batch, one after the other, whose gradients are summed."""
    weights = [variable(300, 400), variable(400, 10)]

    @tf.function
    def step(x: Any, y: Any) -> Any:
        sums = [tf.zeros_like(weight) for weight in weights]
        for part, wanted in zip(tf.split(x, 4), tf.split(y, 4), strict=True):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(tf.nn.relu(part @ weights[0]) @ weights[1] - wanted))
            sums = [a + b for a, b in zip(sums, tape.gradient(loss, weights), strict=True)]
        for weight, total in zip(weights, sums, strict=True):
            weight.assign_sub(0.025 * total)
        return sums[1]

    return step, (tf.random.normal([batch, 300]), tf.zeros([batch, 10]))


def clusters(batch: int) -> Step:
    """Move the centres of sixteen clusters to the means of their points."""
    centres = variable(16, 256)

    @tf.function
    def step(x: Any) -> Any:
        distances = tf.reduce_sum(tf.square(x), 1)[:, None] - 2 * tf.matmul(x, centres, transpose_b=True)
        distances += tf.reduce_sum(tf.square(centres), 1)
        nearest = tf.argmin(distances, 1)
        sums = tf.math.unsorted_segment_sum(x * 1.5, nearest, 16)
        counts = tf.math.unsorted_segment_sum(tf.ones_like(x[:, :1]), nearest, 16)
        centres.assign(tf.math.divide_no_nan(sums, counts))
        return tf.reduce_min(distances, 1)

    return step, (tf.random.normal([batch, 256]),)


def doubles(batch: int) -> Step:
    """Fit a regression in double precision with its covariance."""
    weights = tf.Variable(tf.zeros([200, 1], tf.float64))

    @tf.function
    def step(x: Any, y: Any) -> Any:
        x, y = tf.cast(x, tf.float64), tf.cast(y, tf.float64)
        centred = x - tf.reduce_mean(x, 0)
        covariance = tf.matmul(centred, centred, transpose_a=True)
        weights.assign_sub(1e-4 * tf.matmul(x, x @ weights - y, transpose_a=True))
        return covariance

    return step, (tf.random.normal([batch, 200]), tf.zeros([batch, 1]))


def paths(batch: int) -> Step:
    """Simulate random walks and price an option by their mean."""

    @tf.function
    def step(start: Any) -> Any:
        noise = tf.random.normal([batch, 250], seed=1)
        walks = start[:, None] * tf.exp(tf.cumsum(0.01 * noise, 1))
        return tf.reduce_mean(tf.nn.relu(walks[:, -1] - 1.0)), tf.reduce_max(walks, 1)

    return step, (tf.ones([batch]),)


def resized(batch: int) -> Step:
    """Resize, flip and normalize images, then average them in windows."""

    @tf.function
    def step(images: Any) -> Any:
        large = tf.image.resize(tf.cast(images, tf.float32), [40, 40])
        normal = (tf.image.flip_left_right(large) - 127.0) / 64.0
        return tf.nn.avg_pool2d(normal, 4, 4, "VALID")

    return step, (tf.zeros([batch, 24, 24, 3], tf.uint8),)


def wide_and_deep(batch: int) -> Step:
    """Train a linear part on sparse features beside a deep one on their embeddings."""
    wide, table, first, second = weights = [variable(3000, 1), variable(3000, 32), variable(320, 64), variable(64, 1)]

    def loss_of(features: Any, y: Any) -> Any:
        linear = tf.reduce_sum(tf.gather(wide, features), 1)
        deep = tf.reshape(tf.gather(table, features), [-1, 320])
        logits = linear + tf.nn.relu(deep @ first) @ second
        return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=logits))

    @tf.function
    def step(features: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = loss_of(features, y)
        for weight, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
            weight.assign_sub(0.1 * tf.convert_to_tensor(gradient))
        return loss

    return step, (tf.random.uniform([batch, 10], 0, 3000, tf.int32), tf.zeros([batch, 1]))


def maxout(batch: int) -> Step:
    """Train layers that keep the largest of four products."""
    weights = [variable(200, 400), variable(100, 400), variable(100, 10)]

    def loss_of(x: Any, y: Any) -> Any:
        for weight in weights[:2]:
            x = tf.reduce_max(tf.reshape(x @ weight, [-1, 100, 4]), 2)
        return tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(y, x @ weights[2]))

    labels = tf.one_hot(tf.zeros([batch], tf.int32), 10)
    return descend(weights, loss_of, (tf.random.normal([batch, 200]), labels))


def adversary(batch: int) -> Step:
    """Make examples that a network errs on: the gradient of the input."""
    weights = [variable(600, 300), variable(300, 10)]

    @tf.function
    def step(x: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            logits = tf.tanh(x @ weights[0]) @ weights[1]
            loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        return tf.clip_by_value(x + 0.1 * tf.sign(tape.gradient(loss, x)), 0.0, 1.0)

    return step, (tf.random.uniform([batch, 600]), tf.zeros([batch], tf.int32))


def convolutional_features(batch: int) -> Step:
    """Run convolutions without training them, and keep the features of three depths."""
    filters = [variable(3, 3, 3, 16), variable(3, 3, 16, 32), variable(3, 3, 32, 32)]

    @tf.function
    def step(x: Any) -> Any:
        found = []
        for window in filters:
            x = tf.nn.relu(tf.nn.conv2d(x, window, 2, "SAME"))
            found.append(tf.reduce_mean(x, [1, 2]))
        return tf.concat(found, 1), x

    return step, (tf.random.normal([batch, 32, 32, 3]),)


def spectrum(batch: int) -> Step:
    """Compute power spectra of windows of a signal, and their logarithm in bands."""
    bands = variable(65, 24)

    @tf.function
    def step(signal: Any) -> Any:
        frames = tf.reshape(signal, [-1, 128]) * tf.signal.hann_window(128)
        power = tf.square(tf.abs(tf.signal.rfft(frames)))
        return tf.math.log(tf.nn.relu(power @ bands) + 1e-6)

    return step, (tf.random.normal([batch, 1024]),)


STEPS: dict[str, Callable[[int], Step]] = {
    made.__name__: made
    for made in (
        image_residual, separable, segmentation, transformer, text_convolution, gated, contrastive, variational,
        experts, clipped, accumulated, clusters, doubles, paths, resized, wide_and_deep, maxout, adversary,
        convolutional_features, spectrum,
    )
}  # fmt: skip

if __name__ == "__main__":
    step, arguments = STEPS[sys.argv[1]](int(sys.argv[2]))
    step(*arguments)
