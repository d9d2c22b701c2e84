"""Ten programs that the schedule simulation is judged by, written late on 27 November 2026, after its last change."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf


def variable(*shape: int) -> tf.Variable:
    """Make a variable of small random numbers."""
    return tf.Variable(tf.random.normal(shape, stddev=0.1))


SELF, SENT = [variable(32, 32) for _ in range(3)], [variable(32, 32) for _ in range(3)]


@tf.function
def messages(nodes: Any, links: Any) -> Any:
    """Pass messages along the links of a graph, three times, and read the whole graph out."""
    for own, sent in zip(SELF, SENT, strict=True):
        passed = tf.nn.relu(tf.gather(nodes, links[:, 0]) @ sent)
        met = tf.math.unsorted_segment_max(passed, links[:, 1], 200)
        nodes = tf.tanh(nodes @ own + tf.where(met > 0.0, met, 0.0))
    return tf.reduce_mean(nodes, 0)


@tf.function
def neighbours(points: Any, asked: Any) -> Any:
    """Judge points by their seven nearest neighbours, and clean these judgements up."""
    squares = tf.reduce_sum(tf.square(asked), 1)[:, None] + tf.reduce_sum(tf.square(points), 1)[None]
    near, which = tf.math.top_k(2.0 * tf.matmul(asked, points, transpose_b=True) - squares, 7)
    weights = tf.nn.softmax(near)
    found = tf.reduce_sum(tf.gather(points, which) * weights[..., None], 1)
    unique, places, counts = tf.unique_with_counts(tf.reshape(which, [-1]))
    return found, tf.gather(counts, places), tf.sort(unique)


FILTERS, GATES = [variable(2, 16, 16) for _ in range(6)], [variable(2, 16, 16) for _ in range(6)]


@tf.function
def dilated(sound: Any) -> Any:
    """Run six gated convolutions over a sound, each twice as far apart as the one before."""
    kept = tf.zeros_like(sound)
    for i, (one, gate) in enumerate(zip(FILTERS, GATES, strict=True)):
        padded = tf.pad(sound, [[0, 0], [2**i, 0], [0, 0]])
        found = tf.tanh(tf.nn.conv1d(padded, one, 1, "VALID", dilations=2**i))
        found *= tf.sigmoid(tf.nn.conv1d(padded, gate, 1, "VALID", dilations=2**i))
        kept, sound = kept + found, sound + found
    return tf.reduce_logsumexp(kept, 1)


CODERS = [variable(64, 32), variable(32, 8), variable(32, 8), variable(8, 32), variable(32, 64)]


@tf.function
def autoencoder(x: Any, seed: Any) -> Any:
    """Train a variational autoencoder for a step."""
    first, mean_of, spread_of, back, last = CODERS
    with tf.GradientTape() as tape:
        hidden = tf.nn.elu(x @ first)
        mean, spread = hidden @ mean_of, hidden @ spread_of
        code = mean + tf.exp(0.5 * spread) * tf.random.stateless_normal(tf.shape(mean), seed)
        made = tf.nn.elu(code @ back) @ last
        away = tf.reduce_sum(tf.exp(spread) + mean**2 - 1.0 - spread, 1)
        loss = tf.reduce_mean(tf.reduce_sum(tf.square(made - x), 1) + 0.5 * away)
    gradients = tape.gradient(loss, CODERS)
    clipped, norm = tf.clip_by_global_norm(gradients, 5.0)
    for weight, gradient in zip(CODERS, clipped, strict=True):
        weight.assign_sub(0.01 * gradient)
    return loss, norm


POLICY = [variable(4, 24), variable(24, 2)]


@tf.function
def rollout(state: Any, seed: Any) -> Any:
    """Balance 32 poles for 25 moments, each pushed as a policy says, until all of them have fallen."""
    stood, chance = tf.zeros([32]), tf.zeros([32])
    moment = 0
    while moment < 25 and tf.reduce_any(tf.abs(state[:, 2]) < 0.2):
        scores = tf.nn.log_softmax(tf.tanh(state @ POLICY[0]) @ POLICY[1])
        pushed = tf.random.stateless_categorical(scores, 1, seed + moment, tf.int32)[:, 0]
        chance += tf.gather(scores, pushed, batch_dims=1)
        place, speed, angle, turning = tf.unstack(state, axis=1)
        force = 10.0 * (2.0 * tf.cast(pushed, tf.float32) - 1.0)
        pull = (9.8 * tf.sin(angle) - tf.cos(angle) * force) / (1.3 - 0.05 * tf.cos(angle) ** 2)
        state = tf.stack([place + 0.02 * speed, speed + 0.02 * force, angle + 0.02 * turning, turning + 0.02 * pull], 1)
        stood += tf.cast(tf.abs(angle) < 0.2, tf.float32)
        moment += 1
    return stood, chance


@tf.function
def orbits(places: Any, speeds: Any) -> Any:
    """Move forty stars, which all attract each other, for ten steps of Runge and Kutta."""

    def pull(where: Any) -> Any:
        apart = where[None] - where[:, None]
        far = tf.reduce_sum(apart**2, 2, keepdims=True) + 0.01
        return tf.reduce_sum(apart / far**1.5, 1)

    for _ in tf.range(10):
        one = pull(places)
        two = pull(places + 0.005 * speeds)
        three = pull(places + 0.005 * speeds + 0.000025 * one)
        four = pull(places + 0.01 * speeds + 0.00005 * two)
        places += 0.01 * speeds + 0.0001 * (one + two + three) / 6.0
        speeds += 0.01 * (one + 2.0 * two + 2.0 * three + four) / 6.0
    return places, speeds


@tf.function
def viterbi(seen: Any, moves: Any) -> Any:
    """Find the likeliest states behind thirty observations, forwards, then backwards."""
    best, steps = seen[0], tf.TensorArray(tf.int32, 30)
    for i in tf.range(1, 30):
        scores = best[:, None] + moves
        steps = steps.write(i, tf.argmax(scores, 0, tf.int32))
        best = tf.reduce_max(scores, 0) + seen[i]
    state, path = tf.argmax(best, output_type=tf.int32), tf.TensorArray(tf.int32, 30)
    for i in tf.range(29, 0, -1):
        path = path.write(i, state)
        state = steps.read(i)[state]
    return path.write(0, state).stack()


MEMBERS = [[variable(20, 40), variable(40, 40), variable(40, 3)] for _ in range(8)]


@tf.function
def ensemble(x: Any, labels: Any) -> Any:
    """Train eight small networks beside each other for a step, and ask them all."""
    asked = []
    for member in MEMBERS:
        with tf.GradientTape() as tape:
            scores = tf.nn.gelu(tf.nn.gelu(x @ member[0]) @ member[1]) @ member[2]
            loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, scores)
        for weight, gradient in zip(member, tape.gradient(loss, member), strict=True):
            weight.assign_sub(0.01 * gradient / (1e-3 + tf.norm(gradient)))
        asked.append(tf.nn.softmax(scores))
    return tf.reduce_mean(tf.stack(asked), 0)


@tf.function
def chains(start: Any, seed: Any) -> Any:
    """Walk four Markov chains for twelve steps, each step accepted or not."""
    kept = tf.TensorArray(tf.float32, 12)
    for i in tf.range(12):
        tried = start + 0.5 * tf.random.stateless_normal([4, 16], seed + i)
        better = tf.reduce_sum(start**2 - tried**2, 1) + tf.reduce_sum(tf.cos(3.0 * tried) - tf.cos(3.0 * start), 1)
        if tf.reduce_max(better) > -2.0:
            taken = tf.math.log(tf.random.stateless_uniform([4], seed - i)) < better
            start = tf.where(taken[:, None], tried, start)
        kept = kept.write(i, start)
    return tf.math.reduce_std(kept.stack(), 0)


@tf.function
def pyramid(images: Any) -> Any:
    """Take images apart into details of four sizes, damp small details, and put them together again."""
    details = []
    for _ in range(3):
        small = tf.nn.avg_pool2d(images, 2, 2, "SAME")
        details.append(images - tf.image.resize(small, images.shape[1:3]))
        images = small
    for found in reversed(details):
        weak = tf.abs(found) < tf.reduce_mean(tf.abs(found), [1, 2], keepdims=True)
        images = tf.image.resize(images, found.shape[1:3]) + tf.where(weak, 0.5 * found, found)
    return images


random = np.random.default_rng(11)
messages(tf.random.normal([200, 32]), tf.constant(random.integers(0, 200, [900, 2]), tf.int32))
neighbours(tf.random.normal([600, 12]), tf.random.normal([80, 12]))
dilated(tf.random.normal([4, 128, 16]))
autoencoder(tf.random.normal([48, 64]), tf.constant([1, 2]))
rollout(tf.random.normal([32, 4], stddev=0.05), tf.constant([3, 4]))
orbits(tf.random.normal([40, 3]), tf.random.normal([40, 3]))
viterbi(tf.random.normal([30, 50]), tf.random.normal([50, 50]))
ensemble(tf.random.normal([40, 20]), tf.constant(random.integers(0, 3, [40])))
chains(tf.random.normal([4, 16]), tf.constant([5, 6]))
pyramid(tf.random.normal([2, 48, 48, 3]))
