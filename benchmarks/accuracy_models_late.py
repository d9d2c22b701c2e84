"""Ten more programs for the schedule simulation, written when its model of waking threads had been frozen anew."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf


def variable(*shape: int) -> tf.Variable:
    """Make a variable of small random numbers."""
    return tf.Variable(tf.random.normal(shape, stddev=0.1))


DENOISER = [variable(34, 64), variable(64, 64), variable(64, 2)]


@tf.function
def diffusing(points: Any) -> Any:
    """Train a network for a step to tell the noise in points, which knows how noisy they are."""
    times = tf.random.uniform([points.shape[0]])
    angles = times[:, None] * 2.0 ** tf.range(16, dtype=tf.float32)
    signal, noise = tf.cos(0.5 * np.pi * times)[:, None], tf.random.normal(points.shape)
    noisy = signal * points + tf.sqrt(1.0 - signal**2) * noise
    with tf.GradientTape() as tape:
        x = tf.concat([noisy, tf.sin(angles), tf.cos(angles)], 1)
        for weight in DENOISER[:-1]:
            x = tf.nn.silu(x @ weight)
        loss = tf.reduce_mean((x @ DENOISER[-1] - noise) ** 2)
    for weight, gradient in zip(DENOISER, tape.gradient(loss, DENOISER), strict=True):
        weight.assign_sub(0.01 * gradient)
    return loss


GATE, EXPERTS = variable(32, 6), [(variable(32, 48), variable(48, 32)) for _ in range(6)]


@tf.function
def experts(words: Any) -> Any:
    """Let two of six experts work on each word, as a gate says."""
    shares, chosen = tf.math.top_k(tf.nn.softmax(words @ GATE), 2)
    shares /= tf.reduce_sum(shares, 1, keepdims=True)
    found = tf.zeros_like(words)
    for number, (up, down) in enumerate(EXPERTS):
        own = tf.reduce_sum(tf.where(chosen == number, shares, 0.0), 1)
        places = tf.where(own > 0.0)
        seen = tf.nn.gelu(tf.gather_nd(words, places) @ up) @ down
        found = tf.tensor_scatter_nd_add(found, places, seen * tf.gather_nd(own, places)[:, None])
    return tf.reduce_mean(found, 0)


ACTOR, CRITIC = [variable(6, 32), variable(32, 4)], [variable(6, 32), variable(32, 1)]


@tf.function
def acting(seen: Any, done: Any, rewards: Any) -> Any:
    """Train an actor and a critic for a step, by what came of twenty actions."""
    returns = tf.scan(lambda later, reward: reward + 0.95 * later, rewards, tf.zeros([16]), reverse=True)
    with tf.GradientTape() as tape:
        logits = tf.nn.relu(tf.einsum("tbi,ij->tbj", seen, ACTOR[0])) @ ACTOR[1]
        worth = tf.squeeze(tf.nn.relu(tf.einsum("tbi,ij->tbj", seen, CRITIC[0])) @ CRITIC[1], -1)
        ahead = tf.stop_gradient(returns - worth)
        doubt = tf.nn.sparse_softmax_cross_entropy_with_logits(done, logits)
        loss = tf.reduce_mean(ahead * doubt) + 0.5 * tf.reduce_mean((returns - worth) ** 2)
    gradients, norm = tf.clip_by_global_norm(tape.gradient(loss, ACTOR + CRITIC), 0.5)
    for weight, gradient in zip(ACTOR + CRITIC, gradients, strict=True):
        weight.assign_sub(0.01 * gradient)
    return norm


@tf.function
def particles(heard: Any) -> Any:
    """Follow something that moves by 300 guesses, drawn anew where they fit badly."""
    places, speeds = tf.random.normal([300, 2]), tf.zeros([300, 2])
    found = tf.TensorArray(tf.float32, 12)
    for i in tf.range(12):
        speeds += 0.1 * tf.random.normal([300, 2])
        places += speeds
        weights = tf.nn.softmax(-tf.reduce_sum((places - heard[i]) ** 2, 1))
        found = found.write(i, tf.linalg.matvec(places, weights, transpose_a=True))
        if 1.0 / tf.reduce_sum(weights**2) < 150.0:
            drawn = tf.searchsorted(tf.cumsum(weights), (tf.range(300.0) + tf.random.uniform([])) / 300.0)
            drawn = tf.minimum(drawn, 299)
            places, speeds = tf.gather(places, drawn), tf.gather(speeds, drawn)
    return found.stack()


@tf.function
def warping(one: Any, other: Any) -> Any:
    """Stretch two series until they fit, diagonal by diagonal of the table of their distances."""
    distances = tf.abs(one[:, None] - other[None])
    far = tf.fill([25], 1e9)
    before, last = far, tf.tensor_scatter_nd_update(far, [[0]], [distances[0, 0]])
    for i in tf.range(1, 48):
        rows = tf.range(24)
        columns = i - rows
        here = tf.where((columns >= 0) & (columns < 24), 0.0, 1e9)
        costs = tf.gather_nd(distances, tf.stack([rows, tf.clip_by_value(columns, 0, 23)], 1))
        above, across = tf.concat([[1e9], last[:23]], 0), tf.concat([[1e9], before[:23]], 0)
        best = tf.minimum(tf.minimum(last[:24], above), across)
        if i < 47:
            before, last = last, tf.concat([costs + best + here, [1e9]], 0)
    return tf.reduce_min(last)


@tf.function
def tracing(rays: Any) -> Any:
    """Follow rays into a scene of a ball, a box and a floor until they meet something, and light what they met."""

    def measure(at: Any) -> Any:
        ball = tf.norm(at - [0.0, 0.0, 4.0], axis=1) - 1.0
        box = tf.norm(tf.maximum(tf.abs(at - [1.5, -0.5, 3.0]) - 0.5, 0.0), axis=1)
        return tf.minimum(tf.minimum(ball, box), at[:, 1] + 1.0)

    rays = tf.math.l2_normalize(rays, 1)
    along, left, rounds = tf.zeros([rays.shape[0]]), tf.constant(1.0), 0
    while left > 0.01 and rounds < 20:
        step = measure(along[:, None] * rays)
        along = tf.minimum(along + step, 20.0)
        left = tf.reduce_mean(tf.cast((step > 1e-3) & (along < 20.0), tf.float32))
        rounds += 1
    at = along[:, None] * rays
    slopes = [measure(at + 1e-3 * tf.one_hot(i, 3)) - measure(at - 1e-3 * tf.one_hot(i, 3)) for i in range(3)]
    towards = tf.math.l2_normalize(tf.stack(slopes, 1), 1)
    return tf.nn.relu(tf.linalg.matvec(towards, tf.math.l2_normalize(tf.constant([1.0, 2.0, -1.0]), 0)))


@tf.function
def alternating(ratings: Any, known: Any) -> Any:
    """Factor a table with holes, rows and columns in turn, three times each."""
    columns = tf.random.normal([40, 4])
    weight = 0.1 * tf.eye(4)
    for _ in range(3):
        squares = tf.einsum("rc,ci,cj->rij", known, columns, columns) + weight
        rows = tf.linalg.solve(squares, tf.matmul(known * ratings, columns)[:, :, None])[:, :, 0]
        squares = tf.einsum("rc,ri,rj->cij", known, rows, rows) + weight
        columns = tf.linalg.solve(squares, tf.matmul(known * ratings, rows, transpose_a=True)[:, :, None])[:, :, 0]
    return tf.sqrt(tf.reduce_sum(known * (tf.matmul(rows, columns, transpose_b=True) - ratings) ** 2))


ASKED = tf.constant(np.random.default_rng(3).integers(0, 12, [24, 31]), tf.int32)
LIMITS, ANSWERS = variable(24, 31), variable(24, 32)


@tf.function
def forest(rows: Any) -> Any:
    """Ask 24 trees of five questions each, all together, and add up what they say."""
    trees = tf.tile(tf.range(24)[None], [rows.shape[0], 1])
    at = tf.zeros_like(trees)
    for _ in range(5):
        places = tf.stack([trees, at], 2)
        values = tf.gather(rows, tf.gather_nd(ASKED, places), batch_dims=1)
        at = 2 * at + tf.where(values > tf.gather_nd(LIMITS, places), 2, 1)
    said = tf.gather_nd(ANSWERS, tf.stack([trees, at - 31], 2))
    return tf.argmax(tf.stack([tf.reduce_sum(said, 1), tf.zeros([rows.shape[0]])], 1), 1)


WORDS, TAGS = variable(200, 16), variable(48, 7)
THERE, BACK = (tf.keras.layers.GRUCell(24) for _ in range(2))


@tf.function
def tagging(sentences: Any) -> Any:
    """Read sentences of ten words forwards and backwards, and say of each word what it is."""
    seen = tf.unstack(tf.gather(WORDS, sentences), axis=1)
    read = []
    for cell, words in ((THERE, seen), (BACK, seen[::-1])):
        state, states = tf.zeros([sentences.shape[0], 24]), []
        for word in words:
            _, state = cell(word, state)
            state = state[0] if isinstance(state, (list, tuple)) else state
            states.append(state)
        read.append(states)
    both = tf.concat([tf.stack(read[0], 1), tf.stack(read[1][::-1], 1)], 2)
    return tf.argmax(both @ TAGS, 2)


@tf.function
def life(board: Any) -> Any:
    """Let cells live and die for sixteen generations at most, until all stays as it is."""
    around = tf.constant([[1.0, 1.0, 1.0], [1.0, 0.0, 1.0], [1.0, 1.0, 1.0]])[:, :, None, None]
    moves, generation = tf.constant(True), 0
    while moves and generation < 16:
        edge = tf.concat([board[:, -1:], board, board[:, :1]], 1)
        edge = tf.concat([edge[:, :, -1:], edge, edge[:, :, :1]], 2)
        near = tf.nn.conv2d(edge, around, 1, "VALID")
        after = tf.cast((near == 3.0) | ((near == 2.0) & (board > 0.0)), tf.float32)
        moves = tf.reduce_any(after != board)
        board = tf.ensure_shape(after, board.shape)
        generation += 1
    return tf.reduce_sum(board)


random = np.random.default_rng(17)
diffusing(tf.random.normal([128, 2]))
experts(tf.random.normal([40, 32]))
acting(tf.random.normal([20, 16, 6]), tf.constant(random.integers(0, 4, [20, 16])), tf.random.normal([20, 16]))
particles(tf.cumsum(tf.random.normal([12, 2]), 0))
warping(tf.sin(tf.linspace(0.0, 6.0, 24)), tf.sin(tf.linspace(0.5, 7.0, 24)))
tracing(tf.constant([[x, y, 1.0] for x in np.linspace(-1, 1, 24) for y in np.linspace(-1, 1, 24)], tf.float32))
alternating(tf.random.uniform([30, 40]), tf.constant(random.integers(0, 2, [30, 40]), tf.float32))
forest(tf.random.normal([64, 12]))
tagging(tf.constant(random.integers(0, 200, [4, 10])))
life(tf.constant(random.integers(0, 2, [1, 32, 32, 1]), tf.float32))
