"""Ten programs that the schedule simulation is judged by, written on 27 November 2026, before its last change."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf


def variable(*shape: int) -> tf.Variable:
    """Make a variable of small random numbers."""
    return tf.Variable(tf.random.normal(shape, stddev=0.1))


@tf.function
def kalman(seen: Any) -> Any:
    """Follow a state of six numbers through forty noisy observations."""
    size, noise = 6, 0.1 * tf.eye(6)
    move = tf.eye(size) + tf.linalg.diag([0.1] * (size - 1), k=1)
    mean, spread = tf.zeros([size, 1]), tf.eye(size)
    for i in tf.range(40):
        mean, spread = move @ mean, move @ spread @ tf.transpose(move) + noise
        gain = tf.transpose(tf.linalg.solve(spread + noise, spread))
        mean += gain @ (seen[i][:, None] - mean)
        spread -= gain @ spread
    return mean


@tf.function
def ranking(links: Any) -> Any:
    """Rank 400 pages by the pages that link to them, in fifteen rounds."""
    out = tf.math.bincount(links[:, 0], minlength=400, maxlength=400, dtype=tf.float32)
    ranks = tf.fill([400], 1 / 400)
    for _ in range(15):
        given = tf.gather(tf.math.divide_no_nan(ranks, out), links[:, 0])
        ranks = 0.15 / 400 + 0.85 * tf.math.unsorted_segment_sum(given, links[:, 1], 400)
    return tf.math.top_k(ranks, 10)


@tf.function
def clustering(points: Any) -> Any:
    """Move ten centres to the means of the points that are nearest to them, eight times."""
    centres = points[:10]
    for _ in range(8):
        distances = tf.norm(points[:, None] - centres[None], axis=2)
        nearest = tf.argmin(distances, axis=1, output_type=tf.int32)
        centres = tf.math.unsorted_segment_mean(points, nearest, 10)
    return centres


KERNELS = [variable(3, 3, 16, 16) for _ in range(6)]
SCALES = [(tf.Variable(tf.ones([16])), tf.Variable(tf.zeros([16]))) for _ in KERNELS]
SPEEDS = [tf.Variable(tf.zeros_like(kernel)) for kernel in KERNELS]


@tf.function
def residual(images: Any) -> Any:
    """Train three residual blocks of convolutions and normalisations for a step, with momentum."""
    with tf.GradientTape() as tape:
        x = images
        for i in range(0, 6, 2):
            y = x
            for kernel, (scale, shift) in zip(KERNELS[i : i + 2], SCALES[i : i + 2], strict=True):
                y = tf.nn.conv2d(y, kernel, 1, "SAME")
                y, *_ = tf.compat.v1.nn.fused_batch_norm(y, scale, shift)
                y = tf.nn.relu(y)
            x += y
        loss = tf.reduce_mean(tf.square(tf.reduce_mean(x, [1, 2]) - 1.0))
    for kernel, speed, gradient in zip(KERNELS, SPEEDS, tape.gradient(loss, KERNELS), strict=True):
        speed.assign(0.9 * speed + gradient)
        kernel.assign_sub(0.01 * speed)
    return loss


WORDS, MIXED, WIDE, NARROW = variable(500, 64), variable(64, 192), variable(64, 256), variable(256, 64)


@tf.function
def decoding(first: Any) -> Any:
    """Write twelve words, each after attending to all words so far."""
    keys = values = tf.zeros([1, 64])
    word, written = first, tf.TensorArray(tf.int32, 12)
    for i in tf.range(12):
        tf.autograph.experimental.set_loop_options(
            shape_invariants=[(keys, tf.TensorShape([None, 64])), (values, tf.TensorShape([None, 64]))]
        )
        x = tf.gather(WORDS, word)[None]
        query, key, value = tf.split(x @ MIXED, 3, axis=1)
        keys, values = tf.concat([keys, key], 0), tf.concat([values, value], 0)
        x += tf.nn.softmax(query @ tf.transpose(keys) / 8.0) @ values
        x += tf.nn.relu(x @ WIDE) @ NARROW
        word = tf.argmax(tf.linalg.matvec(WORDS, x[0]), output_type=tf.int32)
        written = written.write(i, word)
    return written.stack()


@tf.function
def augmenting(images: Any) -> Any:
    """Crop, turn and recolour images, each by its own random numbers, and put them side by side."""
    found = []
    for i, image in enumerate(tf.unstack(images)):
        image = tf.image.stateless_random_crop(image, [40, 40, 3], (i, 1))
        image = tf.image.stateless_random_flip_left_right(image, (i, 2))
        image = tf.image.stateless_random_brightness(image, 0.2, (i, 3))
        image = tf.image.stateless_random_saturation(image, 0.5, 1.5, (i, 4))
        found.append(tf.image.resize(image, [32, 32]))
    return tf.clip_by_value(tf.stack(found), 0.0, 1.0)


@tf.function
def ragged(values: Any, lengths: Any) -> Any:
    """Count, sum, sort and pad rows of different lengths."""
    rows = tf.RaggedTensor.from_row_lengths(values, lengths)
    means, most = tf.reduce_mean(rows, 1), tf.reduce_max(rows, 1)
    centred = (rows - means[:, None]) / (1.0 + most[:, None])
    kept = tf.ragged.boolean_mask(centred, centred > 0.0)
    both = tf.concat([centred, kept], 1)
    return tf.reduce_sum(both.to_tensor(), 0), tf.reduce_sum(kept, 1), both.row_lengths()


@tf.function
def conjugate(matrix: Any, right: Any) -> Any:
    """Solve a system of 200 equations by conjugate gradients, until little is left."""
    x, rest = tf.zeros_like(right), right
    way, left = rest, tf.reduce_sum(rest * rest)
    while left > 1e-6:
        moved = tf.linalg.matvec(matrix, way)
        length = left / tf.reduce_sum(way * moved)
        x, rest = x + length * way, rest - length * moved
        before, left = left, tf.reduce_sum(rest * rest)
        way = rest + left / before * way
    return x


CRITIC = [variable(32, 64), variable(64, 64), variable(64, 1)]


@tf.function
def penalty(real: Any, made: Any) -> Any:
    """Train a critic for a step, whose gradient is part of its loss."""
    with tf.GradientTape() as outer:
        between = 0.5 * (real + made)
        with tf.GradientTape() as inner:
            inner.watch(between)
            judged = between
            for weight in CRITIC[:-1]:
                judged = tf.nn.leaky_relu(judged @ weight)
            judged = judged @ CRITIC[-1]
        slopes = tf.norm(tf.convert_to_tensor(inner.gradient(judged, between)), axis=1)
        loss = tf.reduce_mean(judged) + 10.0 * tf.reduce_mean(tf.square(slopes - 1.0))
    for weight, gradient in zip(CRITIC, outer.gradient(loss, CRITIC), strict=True):
        weight.assign_sub(0.01 * tf.clip_by_norm(gradient, 1.0))
    return loss


@tf.function
def pricing(seed: Any) -> Any:
    """Price four options on a thousand random paths each."""
    found = []
    for i, spread in enumerate((0.1, 0.2, 0.3, 0.4)):
        steps = tf.random.stateless_normal([1000, 50], seed + i) * spread * 0.14 - 0.5 * spread**2 * 0.02
        paths = 100.0 * tf.exp(tf.cumsum(steps, axis=1))
        paid = tf.where(tf.reduce_min(paths, 1) < 80.0, 0.0, tf.nn.relu(paths[:, -1] - 100.0))
        found.append((tf.reduce_mean(paid), tf.math.reduce_std(paid)))
    return found


random = np.random.default_rng(7)
half = random.normal(size=(200, 200)).astype(np.float32)
kalman(tf.random.normal([40, 6]))
ranking(tf.constant(random.integers(0, 400, [3000, 2]), tf.int32))
clustering(tf.random.normal([500, 16]))
residual(tf.random.normal([4, 16, 16, 16]))
decoding(tf.constant(3))
augmenting(tf.random.uniform([6, 48, 48, 3]))
ragged(tf.random.normal([600]), tf.constant(random.multinomial(600, [1 / 40] * 40), tf.int64))
conjugate(tf.constant(half @ half.T / 200 + np.eye(200, dtype=np.float32)), tf.random.normal([200]))
penalty(tf.random.normal([64, 32]), tf.random.normal([64, 32]))
pricing(tf.constant([1, 2]))
