"""Fifteen more programs that the schedule simulation is judged by, written when its fixed times were what they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

HEADS, LENGTH, DEPTH = 4, 48, 96


def variable(*shape: int) -> tf.Variable:
    """Make a variable of small random numbers."""
    return tf.Variable(tf.random.normal(shape, stddev=0.1))


def descend(weights: Sequence[tf.Variable], loss_of: Callable[[], Any]) -> Any:
    """Take a step against the gradient of a loss."""
    with tf.GradientTape() as tape:
        loss = loss_of()
    for weight, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
        weight.assign_sub(0.01 * tf.convert_to_tensor(gradient))
    return loss


BLOCKS = [[variable(DEPTH, 3 * DEPTH), variable(DEPTH, DEPTH), variable(DEPTH, 4 * DEPTH), variable(4 * DEPTH, DEPTH)]
          for _ in range(4)]  # fmt: skip


def attend(x: Any, block: Sequence[tf.Variable]) -> Any:
    """Apply self-attention and two dense layers."""
    mixed, joined, wide, narrow = block
    parts = tf.split(tf.reshape(tf.tensordot(x, mixed, 1), [-1, LENGTH, HEADS, 3 * DEPTH // HEADS]), 3, axis=3)
    query, key, value = (tf.transpose(part, [0, 2, 1, 3]) for part in parts)
    shares = tf.nn.softmax(tf.matmul(query, key, transpose_b=True) / 5.0)
    heads = tf.reshape(tf.transpose(shares @ value, [0, 2, 1, 3]), [-1, LENGTH, DEPTH])
    x += tf.tensordot(heads, joined, 1)
    return x + tf.tensordot(tf.nn.gelu(tf.tensordot(x, wide, 1)), narrow, 1)


@tf.function
def attention(x: Any) -> Any:
    """Train four layers of attention for a step."""

    def loss_of() -> Any:
        y = x
        for block in BLOCKS:
            y = attend(y, block)
        return tf.reduce_mean(tf.square(y))

    return descend([weight for block in BLOCKS for weight in block], loss_of)


DENSE = [variable(256, 256) for _ in range(8)]
MOMENTS = [[tf.Variable(tf.zeros_like(weight)) for _ in range(2)] for weight in DENSE]


@tf.function
def adam(x: Any) -> Any:
    """Train eight dense layers for a step, with Adam written out."""
    with tf.GradientTape() as tape:
        y = x
        for weight in DENSE:
            y = tf.nn.relu(y @ weight)
        loss = tf.reduce_mean(tf.square(y - 1.0))
    for weight, (first, second), gradient in zip(DENSE, MOMENTS, tape.gradient(loss, DENSE), strict=True):
        first.assign(0.9 * first + 0.1 * gradient)
        second.assign(0.999 * second + 0.001 * tf.square(gradient))
        weight.assign_sub(0.01 * first / (tf.sqrt(second) + 1e-7))
    return loss


@tf.function
def half(x: Any) -> Any:
    """Subtract, or add a mean."""
    return tf.where(x > 0.0, x - 0.5 * tf.reduce_mean(x), x + 0.1)


@tf.function
def quarter(x: Any) -> Any:
    """Call a function twice."""
    return half(half(x)) * 0.99


@tf.function
def nested(x: Any) -> Any:
    """Call functions that call functions, side by side and one after the other."""
    rows = tf.unstack(x)
    for _ in range(4):
        rows = [quarter(row) for row in rows]
    return tf.stack(rows)


GATES, STATES, READ = variable(96, 128), variable(96, 64), variable(64, 8)


@tf.function
def gru(sequence: Any) -> Any:
    """Train a GRU for a step: a loop, and the loop of its gradient."""

    def body(i: Any, state: Any) -> Any:
        joined = tf.concat([sequence[i], state], 1)
        reset, update = tf.split(tf.sigmoid(joined @ GATES), 2, 1)
        new = tf.tanh(tf.concat([sequence[i], reset * state], 1) @ STATES)
        return i + 1, update * state + (1.0 - update) * new

    def loss_of() -> Any:
        _, state = tf.while_loop(lambda i, _: i < 24, body, (0, tf.zeros([16, 64])), maximum_iterations=24)
        return tf.reduce_mean(tf.square(state @ READ))

    return descend([GATES, STATES, READ], loss_of)


IMAGES = tf.keras.Sequential([
    tf.keras.Input((32, 32, 3)), tf.keras.layers.Conv2D(16, 3, 2, "same"),
    *[make() for _ in range(4) for make in (
        lambda: tf.keras.layers.DepthwiseConv2D(3, padding="same"), tf.keras.layers.BatchNormalization,
        tf.keras.layers.ReLU, lambda: tf.keras.layers.Conv2D(24, 1))],
    tf.keras.layers.GlobalAveragePooling2D(), tf.keras.layers.Dense(10),
])  # fmt: skip


@tf.function
def separable(images: Any) -> Any:
    """Train depthwise convolutions with batch normalization for a step."""
    weights = IMAGES.trainable_variables
    return descend(weights, lambda: tf.reduce_mean(tf.square(IMAGES(images, training=True))))


WORDS, LABELS = variable(5000, 48), variable(48, 40)


@tf.function
def embedding(ids: Any, labels: Any) -> Any:
    """Train bags of embedded words for a step."""

    def loss_of() -> Any:
        bags = tf.reduce_mean(tf.gather(WORDS, ids), 1)
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, bags @ LABELS))

    return descend([WORDS, LABELS], loss_of)


NEXT = variable(64, 500)
STATE = variable(500, 64)


@tf.function
def beam(start: Any) -> Any:
    """Decode sixteen words with a beam of eight, by sorting and gathering."""
    scores, state = tf.zeros([8]), start
    words = tf.TensorArray(tf.int32, 16, element_shape=[8])
    for i in tf.range(16):
        found = tf.nn.log_softmax(state @ NEXT) + scores[:, None]
        scores, best = tf.math.top_k(tf.reshape(found, [-1]), 8)
        words = words.write(i, best % 500)
        state = tf.tanh(tf.gather(state, best // 500) + tf.gather(STATE, best % 500))
    return words.stack(), scores


@tf.function
def stencil(field: Any) -> Any:
    """Let heat spread over a grid for twenty steps, unrolled."""
    for _ in range(20):
        around = tf.roll(field, 1, 0) + tf.roll(field, -1, 0) + tf.roll(field, 1, 1) + tf.roll(field, -1, 1)
        field = field + 0.2 * (around - 4.0 * field)
    return field


@tf.function
def solving(matrices: Any) -> Any:
    """Factorize and solve matrices, one by one."""
    solved = []
    for matrix in tf.unstack(matrices):
        lower = tf.linalg.cholesky(matrix @ tf.transpose(matrix) + tf.eye(96))
        solved.append(tf.linalg.triangular_solve(lower, matrix))
        solved.append(tf.linalg.qr(matrix[:, :32]).q @ tf.ones([32, 96]))
    return tf.add_n(solved)


@tf.function
def spectrum(waves: Any) -> Any:
    """Compute the cepstra of a few waves."""
    found = []
    for wave in tf.unstack(waves):
        energy = tf.abs(tf.signal.stft(wave, 400, 160))
        mel = tf.tensordot(energy, tf.signal.linear_to_mel_weight_matrix(40, 257), 1)
        found.append(tf.signal.mfccs_from_log_mel_spectrograms(tf.math.log(mel + 1e-6))[:, :13])
    return tf.stack(found)


@tf.function
def text(lines: Any) -> Any:
    """Split lines, hash their words, and count them."""
    words = tf.strings.split(tf.strings.lower(lines))
    hashed = tf.strings.to_hash_bucket_fast(words.flat_values, 300)
    counts = tf.math.unsorted_segment_sum(tf.ones_like(hashed), hashed, 300)
    lengths = tf.strings.length(tf.strings.regex_replace(lines, "[aeiou]", ""))
    return counts, tf.reduce_sum(lengths), tf.strings.join([lines, lines], "-")


@tf.function
def mapped(points: Any) -> Any:
    """Map a function of some products over forty elements."""

    def one(point: Any) -> Any:
        outer = point[:, None] * point[None, :]
        return tf.reduce_sum(tf.linalg.matvec(outer @ outer, point))

    return tf.map_fn(one, points, fn_output_signature=tf.float32)


@tf.function
def branching(x: Any) -> Any:
    """Take one of three branches in each of twelve rounds, and one of two within."""
    for i in range(12):
        x = tf.switch_case(i % 3 + 0 * tf.cast(x[0, 0], tf.int32), [
            lambda x=x: tf.tanh(x @ x), lambda x=x: tf.cond(tf.reduce_sum(x) > 0.0, lambda: x * 0.5, lambda: x + 1.0),
            lambda x=x: tf.transpose(x) - tf.reduce_mean(x)])  # fmt: skip
    return x


@tf.function
def mixture(points: Any, means: Any) -> Any:
    """Fit a mixture of Gaussians for six rounds."""
    for _ in range(6):
        distances = tf.reduce_sum(tf.square(points[:, None] - means[None]), 2)
        shares = tf.exp(-distances - tf.reduce_logsumexp(-distances, 1, keepdims=True))
        means = tf.matmul(shares, points, transpose_a=True) / tf.reduce_sum(shares, 0)[:, None]
    return means


@tf.function
def sorting(rows: Any) -> Any:
    """Sort, count and search columns of different lengths."""
    found = []
    for i, row in enumerate(tf.unstack(rows)):
        values = tf.sort(row[: 2000 + 1000 * i])
        unique = tf.unique(tf.cast(values * 50.0, tf.int32))
        counts = tf.math.bincount(unique.idx, maxlength=400)
        found.append(tf.searchsorted(values, row[:200]) + tf.reduce_max(counts))
    return tf.add_n(found)


attention(tf.random.normal([4, LENGTH, DEPTH]))
adam(tf.random.normal([64, 256]))
nested(tf.random.normal([12, 400]))
gru(tf.random.normal([24, 16, 32]))
separable(tf.random.normal([8, 32, 32, 3]))
embedding(tf.random.uniform([64, 20], 0, 5000, tf.int32), tf.zeros([64], tf.int32))
beam(tf.random.normal([8, 64]))
stencil(tf.random.normal([256, 256]))
solving(tf.random.normal([6, 96, 96]))
spectrum(tf.random.normal([4, 16000]))
text(tf.constant(["the quick brown fox jumps over the lazy dog", "Pack my box with five dozen jugs"] * 200))
mapped(tf.random.normal([40, 64]))
branching(tf.random.normal([96, 96]) * 0.1)
mixture(tf.random.normal([600, 8]), tf.random.normal([12, 8]))
sorting(tf.random.uniform([8, 10000]))
