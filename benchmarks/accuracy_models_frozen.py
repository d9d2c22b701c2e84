"""Ten programs that the schedule simulation is judged by, written on 28 November 2026, after the model was frozen."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf


def variable(*shape: int) -> tf.Variable:
    """Make a variable of small random numbers."""
    return tf.Variable(tf.random.normal(shape, stddev=0.1))


VOTES = variable(48, 10, 8, 12)


@tf.function
def routing(parts: Any) -> Any:
    """Route what small capsules see to large ones, by three rounds of agreement."""
    votes = tf.einsum("bid,iodk->biok", parts, VOTES)
    logits = tf.zeros(votes.shape[:3])
    for _ in range(3):
        total = tf.reduce_sum(tf.nn.softmax(logits, 2)[..., None] * votes, 1)
        square = tf.reduce_sum(total**2, -1, keepdims=True)
        whole = total * tf.math.rsqrt(square + 1e-6) * square / (1.0 + square)
        logits += tf.reduce_sum(votes * whole[:, None], -1)
    return tf.norm(whole, axis=-1)


COUPLED = [(variable(6, 24), variable(24, 12)) for _ in range(5)]


@tf.function
def flow(x: Any) -> Any:
    """Train invertible layers for a step, to make points look like normal ones."""
    with tf.GradientTape() as tape:
        volume, moved = tf.zeros([x.shape[0]]), x
        for one, other in COUPLED:
            kept, changed = tf.split(moved, 2, axis=1)
            shift, scale = tf.split(tf.tanh(kept @ one) @ other, 2, axis=1)
            moved = tf.concat([changed * tf.exp(scale) + shift, kept], 1)
            volume += tf.reduce_sum(scale, 1)
        loss = tf.reduce_mean(0.5 * tf.reduce_sum(moved**2, 1) - volume)
    weights = [weight for pair in COUPLED for weight in pair]
    for weight, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
        weight.assign_sub(0.01 * gradient)
    return loss


@tf.function
def transport(source: Any, target: Any) -> Any:
    """Move one cloud of points onto another as cheaply as possible, until the plan stays as it is."""
    costs = tf.reduce_sum((source[:, None] - target[None]) ** 2, 2) / 0.5
    left, right, change, rounds = tf.zeros([60]), tf.zeros([80]), tf.constant(1.0), 0
    while change > 1e-3 and rounds < 15:
        right = -tf.reduce_logsumexp(left[:, None] - costs, 0)
        better = -tf.reduce_logsumexp(right[None] - costs, 1)
        change = tf.reduce_max(tf.abs(better - left))
        left, rounds = better, rounds + 1
    return tf.reduce_sum(tf.exp(left[:, None] + right[None] - costs) * costs), rounds


READERS, BOOKS = variable(500, 16), variable(900, 16)
TOWERS = [variable(16, 16), variable(16, 16)]


@tf.function
def towers(readers: Any, books: Any) -> Any:
    """Train two towers for a step, so that readers find the books that they have read among all of a batch."""
    weights = [READERS, BOOKS, *TOWERS]
    with tf.GradientTape() as tape:
        who = tf.nn.l2_normalize(tf.nn.embedding_lookup(READERS, readers) @ TOWERS[0], 1)
        what = tf.nn.l2_normalize(tf.nn.embedding_lookup(BOOKS, books) @ TOWERS[1], 1)
        scores = 10.0 * tf.matmul(who, what, transpose_b=True)
        own = tf.range(tf.shape(scores)[0])
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(own, scores))
    for weight, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
        if isinstance(gradient, tf.IndexedSlices):
            weight.scatter_sub(tf.IndexedSlices(0.1 * gradient.values, gradient.indices))
        else:
            weight.assign_sub(0.1 * gradient)
    return loss, tf.reduce_mean(tf.cast(tf.math.in_top_k(own, scores, 3), tf.float32))


FIELD = [variable(8, 32), variable(32, 8)]


@tf.function
def integrating(state: Any) -> Any:
    """Follow a learnt field for ten steps of the Runge-Kutta method."""

    def slope(at: Any) -> Any:
        return tf.nn.softplus(at @ FIELD[0]) @ FIELD[1] - at

    path = tf.TensorArray(tf.float32, 10)
    for i in tf.range(10):
        one = slope(state)
        two = slope(state + 0.05 * one)
        three = slope(state + 0.05 * two)
        four = slope(state + 0.1 * three)
        state += 0.1 / 6.0 * (one + 2.0 * (two + three) + four)
        path = path.write(i, state)
    return path.stack()


BANDS = tf.constant(tf.signal.linear_to_mel_weight_matrix(20, 65, 8000, 80.0, 3800.0).numpy())
HEARD = [variable(20, 32), variable(32, 12)]


@tf.function
def speech(sound: Any, written: Any) -> Any:
    """Turn sounds into spectra, and compare the letters heard in them with what was said."""
    spectra = tf.abs(tf.signal.stft(sound, 128, 64))
    bands = tf.math.log(spectra @ BANDS + 1e-6)
    bands -= tf.reduce_mean(bands, 1, keepdims=True)
    heard = tf.nn.relu(bands @ HEARD[0]) @ HEARD[1]
    lengths = tf.fill([heard.shape[0]], heard.shape[1])
    letters = tf.fill([heard.shape[0]], written.shape[1])
    loss = tf.nn.ctc_loss(written, heard, letters, lengths, logits_time_major=False, blank_index=0)
    return tf.reduce_mean(loss), tf.argmax(heard, 2)


DOWN = [variable(3, 3, 3, 8), variable(3, 3, 8, 16)]
UP = [variable(2, 2, 8, 16), variable(3, 3, 16, 4)]


@tf.function
def segmenting(images: Any) -> Any:
    """Say of each pixel what it belongs to: down, up again, and across."""
    fine = tf.nn.relu(tf.nn.conv2d(images, DOWN[0], 1, "SAME"))
    coarse = tf.nn.relu(tf.nn.conv2d(tf.nn.max_pool2d(fine, 2, 2, "SAME"), DOWN[1], 1, "SAME"))
    wide = tf.nn.conv2d_transpose(coarse, UP[0], tf.shape(fine), 2, "SAME")
    scores = tf.nn.conv2d(tf.concat([wide, fine], 3), UP[1], 1, "SAME")
    kinds = tf.argmax(scores, 3, tf.int32)
    return tf.reduce_max(tf.nn.softmax(scores), 3), tf.math.bincount(kinds, maxlength=4)


@tf.function
def leapfrog(place: Any, seed: Any) -> Any:
    """Draw eight samples by Hamiltonian dynamics, the slopes taken on the way."""

    def energy(at: Any) -> Any:
        return tf.reduce_sum(0.5 * at**2 + tf.cos(2.0 * at), 1)

    def push(at: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(at)
            level = energy(at)
        return tf.convert_to_tensor(tape.gradient(level, at))

    kept = tf.zeros([])
    for i in tf.range(8):
        speed = tf.random.stateless_normal([16, 10], seed + i)
        before, to = energy(place) + 0.5 * tf.reduce_sum(speed**2, 1), place
        speed -= 0.05 * push(to)
        for _ in range(3):
            to += 0.1 * speed
            speed -= 0.1 * push(to)
        after = energy(to) + 0.5 * tf.reduce_sum(speed**2, 1)
        taken = tf.math.log(tf.random.stateless_uniform([16], seed - i)) < before - after
        place = tf.where(taken[:, None], to, place)
        kept += tf.reduce_mean(tf.cast(taken, tf.float32))
    return place, kept / 8.0


@tf.function
def pages(places: Any, shares: Any) -> Any:
    """Rank 400 pages by the links between them, until the ranks stay as they are."""
    links = tf.sparse.reorder(tf.SparseTensor(places, shares, [400, 400]))
    ranks, change = tf.fill([400, 1], 1.0 / 400.0), tf.constant(1.0)
    while change > 1e-6:
        better = 0.15 / 400.0 + 0.85 * tf.sparse.sparse_dense_matmul(links, ranks)
        better = tf.ensure_shape(better / tf.reduce_sum(better), [400, 1])
        change = tf.reduce_sum(tf.abs(better - ranks))
        ranks = better
    return tf.math.top_k(ranks[:, 0], 10).indices


@tf.function
def fitting(times: Any, seen: Any) -> Any:
    """Fit two decaying waves to measurements by four damped Gauss-Newton steps."""
    found = tf.constant([1.0, 0.4, 3.0, 0.6, 0.2, 5.0])
    damping = 0.1
    for _ in range(4):
        with tf.GradientTape() as tape:
            tape.watch(found)
            waves = [found[i] * tf.exp(-found[i + 1] * times) * tf.sin(found[i + 2] * times) for i in (0, 3)]
            missing = seen - waves[0] - waves[1]
        slopes = tape.jacobian(missing, found)
        square = tf.matmul(slopes, slopes, transpose_a=True)
        square += damping * tf.linalg.diag(tf.linalg.diag_part(square) + 1e-3)
        found -= tf.linalg.solve(square, tf.linalg.matvec(slopes, missing, transpose_a=True)[:, None])[:, 0]
    return found


random = np.random.default_rng(13)
where = np.unique(random.integers(0, 400, [2400, 2]), axis=0)
routing(tf.random.normal([4, 48, 8]))
flow(tf.random.normal([64, 12]))
transport(tf.random.normal([60, 3]), tf.random.normal([80, 3]) + 0.5)
towers(tf.constant(random.integers(0, 500, [64])), tf.constant(random.permutation(900)[:64]))
integrating(tf.random.normal([40, 8]))
speech(tf.random.normal([3, 2048]), tf.constant(random.integers(1, 12, [3, 8]), tf.int32))
segmenting(tf.random.normal([2, 40, 40, 3]))
leapfrog(tf.random.normal([16, 10]), tf.constant([7, 8]))
pages(tf.constant(where, tf.int64), tf.constant(1.0 / np.bincount(where[:, 1], minlength=400)[where[:, 1]], tf.float32))
fitting(tf.linspace(0.0, 6.0, 120), tf.sin(tf.linspace(0.0, 18.0, 120)) * 0.8)
