"""Ten more programs for the schedule simulation, written when the steps of thread settings no longer took turns."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf


def variable(*shape: int) -> tf.Variable:
    """Make a variable of small random numbers."""
    return tf.Variable(tf.random.normal(shape, stddev=0.1))


@tf.function
def voting(points: Any, picked: Any) -> Any:
    """Draw lines through pairs of points, let all points vote for those near them, and fit the best one's voters."""
    first, second = (tf.gather(points, picked[:, i]) for i in range(2))
    slope = tf.math.divide_no_nan(second[:, 1] - first[:, 1], second[:, 0] - first[:, 0])
    offset = first[:, 1] - slope * first[:, 0]
    away = tf.abs(points[None, :, 1] - slope[:, None] * points[None, :, 0] - offset[:, None])
    votes = tf.reduce_sum(tf.cast(away < 0.2, tf.int32), 1)
    near = tf.boolean_mask(points, away[tf.argmax(votes)] < 0.2)
    design = tf.stack([near[:, 0], tf.ones_like(near[:, 0])], 1)
    return tf.linalg.lstsq(design, near[:, 1:], l2_regularizer=1e-3)


@tf.function
def denoising(waves: Any) -> Any:
    """Take Haar's wavelets of signals in five levels, shrink the small ones, and put the signals together again."""
    levels, smooth = [], waves
    for _ in range(5):
        even, odd = smooth[:, ::2], smooth[:, 1::2]
        levels.append((even - odd) * 0.70710678)
        smooth = (even + odd) * 0.70710678
    for detail in reversed(levels):
        size = tf.reduce_mean(tf.abs(detail), 1, keepdims=True) / 0.6745
        kept = tf.sign(detail) * tf.nn.relu(tf.abs(detail) - size)
        pair = tf.stack([smooth + kept, smooth - kept], 2) * 0.70710678
        smooth = tf.reshape(pair, [waves.shape[0], -1])
    return smooth


@tf.function
def steering(state: Any, dynamics: Any, push: Any) -> Any:
    """Solve Riccati's equation backwards over twelve steps, and steer a cart by what it says."""
    cost, gains = tf.eye(4), []
    for _ in range(12):
        weighed = tf.matmul(push, cost, transpose_a=True)
        gain = tf.linalg.solve(tf.matmul(weighed, push) + 0.1 * tf.eye(2), tf.matmul(weighed, dynamics))
        closed = dynamics - tf.matmul(push, gain)
        cost = tf.eye(4) + tf.matmul(dynamics, tf.matmul(cost, closed), transpose_a=True)
        gains.append(gain)
    path = []
    for gain in reversed(gains):
        state = tf.matmul(dynamics, state) - tf.matmul(push, tf.clip_by_value(tf.matmul(gain, state), -1.0, 1.0))
        path.append(state)
    return tf.concat(path, 1)


ITEMS, PEOPLE = variable(30, 6), variable(40, 6)


@tf.function
def recommending(scores: Any, known: Any) -> Any:
    """Alternate twice between fitting people to items and items to people, by least squares over what is known."""
    items, people = ITEMS.read_value(), PEOPLE.read_value()
    for _ in range(2):
        both = tf.einsum("ui,ik,il->ukl", known, items, items) + 0.1 * tf.eye(6)
        people = tf.linalg.cholesky_solve(tf.linalg.cholesky(both), tf.matmul(known * scores, items)[..., None])[..., 0]
        both = tf.einsum("ui,uk,ul->ikl", known, people, people) + 0.1 * tf.eye(6)
        wanted = tf.matmul(known * scores, people, transpose_a=True)
        items = tf.linalg.cholesky_solve(tf.linalg.cholesky(both), wanted[..., None])[..., 0]
    ITEMS.assign(items)
    PEOPLE.assign(people)
    return tf.reduce_mean(known * (scores - tf.matmul(people, items, transpose_b=True)) ** 2)


@tf.function
def bidding(values: Any) -> Any:
    """Auction goods off: whoever has none bids for the one worth most at its price, until nobody is left."""
    people = values.shape[0]

    def is_open(round_: Any, owner: Any, prices: Any) -> Any:
        return tf.reduce_any(owner < 0) & (round_ < 60)

    def bid(round_: Any, owner: Any, prices: Any) -> Any:
        has = tf.reduce_any(owner[None, :] == tf.range(people)[:, None], 1)
        bidder = tf.argmin(tf.cast(has, tf.int32), output_type=tf.int32)
        best, at = tf.math.top_k(values[bidder] - prices, 2)
        raised = prices[at[0]] + best[0] - best[1] + 0.05
        where = at[:1, None]
        return (
            round_ + 1,
            tf.tensor_scatter_nd_update(owner, where, bidder[None]),
            tf.tensor_scatter_nd_update(prices, where, raised[None]),
        )

    _, owner, prices = tf.while_loop(is_open, bid, (0, tf.fill([people], -1), tf.zeros([people])))
    return owner, prices


TOKENS, CHANNELS = [variable(16, 24), variable(24, 16)], [variable(32, 48), variable(48, 32)]
SHARES, PATCHES = variable(32, 10), variable(48, 32)
MIXER = [*TOKENS, *CHANNELS, SHARES, PATCHES]
SPEEDS = [tf.Variable(tf.zeros_like(weight)) for weight in MIXER]


@tf.function
def mixing(pictures: Any, labels: Any) -> Any:
    """Train a block that mixes patches of pictures, then their channels, with momentum, for a step."""
    with tf.GradientTape() as tape:
        cut = tf.image.extract_patches(pictures, [1, 4, 4, 1], [1, 4, 4, 1], [1, 1, 1, 1], "VALID")
        x = tf.matmul(tf.reshape(cut, [-1, 16, 48]), PATCHES)
        across = tf.transpose(x - tf.reduce_mean(x, 2, keepdims=True), [0, 2, 1])
        x += tf.transpose(tf.matmul(tf.nn.gelu(tf.matmul(across, TOKENS[0])), TOKENS[1]), [0, 2, 1])
        x += tf.matmul(tf.nn.gelu(tf.matmul(x - tf.reduce_mean(x, 2, keepdims=True), CHANNELS[0])), CHANNELS[1])
        logits = tf.matmul(tf.reduce_mean(x, 1), SHARES)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
    for weight, speed, gradient in zip(MIXER, SPEEDS, tape.gradient(loss, MIXER), strict=True):
        weight.assign_sub(0.05 * speed.assign(0.9 * speed + gradient))
    return loss


@tf.function
def hopping(start: Any, seed: Any) -> Any:
    """Sample a distribution with two hills by thirty steps of Metropolis, eight walkers at a time."""

    def height(at: Any) -> Any:
        hills = [-0.5 * tf.reduce_sum((at - hill) ** 2, 1) for hill in (-1.5, 1.5)]
        return tf.reduce_logsumexp(tf.stack(hills), 0)

    at, now, taken = start, height(start), tf.zeros([8])
    for i in tf.range(30):
        key = tf.stack([seed, i])
        there = at + 0.8 * tf.random.stateless_normal([8, 2], key)
        then = height(there)
        goes = tf.math.log(tf.random.stateless_uniform([8], key + 7)) < then - now
        at, now = tf.where(goes[:, None], there, at), tf.where(goes, then, now)
        taken += tf.cast(goes, tf.float32)
    return at, taken / 30.0


@tf.function
def indexing(words: Any, pages: Any) -> Any:
    """Index words by the pages that they are on, weigh them by how rare they are, and answer a query."""
    different, numbers, counts = tf.unique_with_counts(words)
    cells = tf.scatter_nd(tf.stack([numbers, pages], 1), tf.ones_like(pages, tf.float32), [60, 12])
    found_on = tf.math.count_nonzero(cells, 1, dtype=tf.float32)
    weights = tf.math.log(12.0 / tf.maximum(found_on, 1.0))
    scores = tf.math.l2_normalize(cells * weights[:, None], 0)
    query = tf.reduce_max(tf.one_hot(numbers[:5], 60), 0) * weights
    best = tf.math.top_k(tf.linalg.matvec(scores, query, transpose_a=True), 3)
    longest = tf.reduce_max(tf.strings.length(different))
    return (
        best.indices,
        best.values,
        tf.reduce_max(counts),
        longest,
        tf.math.segment_sum(tf.sort(pages), tf.sort(pages)),
    )


WALLS = tf.constant(np.pad(np.ones([18, 18], np.float32), 1)[None, :, :, None])


@tf.function
def flowing(speed: Any, pressure: Any) -> Any:
    """Move a fluid in a box for two steps: carry it along, then take its divergence out in ten rounds."""
    for _ in range(2):
        back = tf.stack(tf.meshgrid(tf.range(20.0), tf.range(20.0)), 2) - 0.2 * speed[0]
        cell = tf.cast(tf.clip_by_value(back, 0.0, 18.0), tf.int32)
        speed = 0.5 * (speed + tf.gather_nd(speed[0], cell[..., ::-1])[None]) * WALLS
        right = tf.roll(speed[..., :1], -1, 2) - tf.roll(speed[..., :1], 1, 2)
        down = tf.roll(speed[..., 1:], -1, 1) - tf.roll(speed[..., 1:], 1, 1)
        for _ in range(10):
            around = 4.0 * tf.nn.avg_pool2d(
                tf.pad(pressure, [[0, 0], [1, 1], [1, 1], [0, 0]], "SYMMETRIC"), 3, 1, "VALID"
            )
            pressure = 0.25 * (around - 0.5 * (right + down)) * WALLS
        push = [tf.roll(pressure, -1, axis) - tf.roll(pressure, 1, axis) for axis in (2, 1)]
        speed -= 0.5 * tf.concat(push, 3)
    return speed, pressure


HEDGE = tf.keras.Sequential([tf.keras.layers.Dense(12, "tanh"), tf.keras.layers.Dense(1)])
HEDGE.build([None, 3])
NADAM = tf.keras.optimizers.Nadam(1e-3)
NADAM.build(HEDGE.trainable_variables)


@tf.function
def hedging(prices: Any) -> Any:
    """Train Keras layers for a step to hold shares over eight days so that what an option pays is covered."""
    with tf.GradientTape() as tape:
        held, gained = tf.zeros([32]), tf.zeros([32])
        for day in range(8):
            seen = tf.stack([tf.math.log(prices[:, day]), tf.fill([32], (8.0 - day) / 8.0), held], 1)
            held = HEDGE(seen)[:, 0]
            gained += held * (prices[:, day + 1] - prices[:, day])
        short = tf.nn.relu(prices[:, -1] - 1.0) - gained
        loss = tf.math.reduce_std(short) + tf.reduce_mean(tf.sort(short)[-8:])
    NADAM.apply(tape.gradient(loss, HEDGE.trainable_variables), HEDGE.trainable_variables)
    return loss


random = np.random.default_rng(37)
voting(tf.random.normal([60, 2]), tf.constant(random.integers(0, 60, [25, 2])))
denoising(tf.random.normal([6, 256]))
steering(tf.ones([4, 1]), tf.eye(4) + tf.random.normal([4, 4], stddev=0.1), tf.random.normal([4, 2], stddev=0.3))
recommending(tf.random.uniform([40, 30]), tf.round(tf.random.uniform([40, 30])))
bidding(tf.random.uniform([10, 10]))
mixing(tf.random.uniform([4, 16, 16, 3]), tf.constant([1, 3, 5, 7]))
hopping(tf.random.normal([8, 2]), tf.constant(11))
indexing(tf.constant([f"word{n * n % 47}" for n in range(150)]), tf.constant(random.integers(0, 12, [150]), tf.int32))
flowing(tf.random.normal([1, 20, 20, 2]), tf.zeros([1, 20, 20, 1]))
hedging(tf.exp(tf.cumsum(tf.random.normal([32, 9], stddev=0.05), 1)))
