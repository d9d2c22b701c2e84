"""Ten more programs for the schedule simulation, written when a step that counts came after others of its graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf


def variable(*shape: int) -> tf.Variable:
    """Make a variable of small random numbers."""
    return tf.Variable(tf.random.normal(shape, stddev=0.1))


CODES, SEEN, SUMS = variable(64, 12), tf.Variable(tf.ones([64])), variable(64, 12)
PACK, UNPACK = variable(24, 12), variable(12, 24)


@tf.function
def quantizing(rows: Any) -> Any:
    """Train an autoencoder for a step whose codes come from a book, and move the book towards them."""
    with tf.GradientTape() as tape:
        packed = tf.tanh(rows @ PACK)
        apart = tf.reduce_sum(packed**2, 1, keepdims=True) - 2.0 * tf.matmul(packed, CODES, transpose_b=True)
        nearest = tf.argmin(apart + tf.reduce_sum(CODES**2, 1), 1)
        code = tf.gather(CODES, nearest)
        straight = packed + tf.stop_gradient(code - packed)
        loss = tf.reduce_mean((straight @ UNPACK - rows) ** 2) + 0.25 * tf.reduce_mean((packed - code) ** 2)
    for weight, gradient in zip((PACK, UNPACK), tape.gradient(loss, [PACK, UNPACK]), strict=True):
        weight.assign_sub(0.05 * gradient)
    chosen = tf.one_hot(nearest, 64)
    SEEN.assign(0.99 * SEEN + 0.01 * tf.reduce_sum(chosen, 0))
    SUMS.assign(0.99 * SUMS + 0.01 * tf.matmul(chosen, packed, transpose_a=True))
    CODES.assign(SUMS / (SEEN[:, None] + 1e-3))
    return loss


READ, WRITTEN = tf.keras.layers.Embedding(60, 32), tf.keras.layers.Embedding(60, 32)
INSIDE, ACROSS = (tf.keras.layers.MultiHeadAttention(4, 8) for _ in range(2))
AFTER_INSIDE, AFTER_ACROSS = (tf.keras.layers.LayerNormalization() for _ in range(2))
SAID = tf.keras.layers.Dense(60)


def translate(read: Any, written: Any) -> Any:
    """Say which words follow those written so far, after attention to these and to those read."""
    read, x = READ(read), WRITTEN(written)
    x = AFTER_INSIDE(x + INSIDE(x, x, use_causal_mask=True))
    return SAID(AFTER_ACROSS(x + ACROSS(x, read)))


translate(tf.zeros([1, 9], tf.int32), tf.zeros([1, 7], tf.int32))
TRANSLATOR = [READ, WRITTEN, INSIDE, ACROSS, AFTER_INSIDE, AFTER_ACROSS, SAID]
TRANSLATOR_WEIGHTS = [weight for layer in TRANSLATOR for weight in layer.trainable_variables]
ADAM = tf.keras.optimizers.Adam(1e-3)
ADAM.build(TRANSLATOR_WEIGHTS)


@tf.function
def translating(read: Any, written: Any, wanted: Any) -> Any:
    """Train Keras layers of attention for a step to write a sentence after another."""
    with tf.GradientTape() as tape:
        logits = translate(read, written)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(wanted, logits))
    ADAM.apply(tape.gradient(loss, TRANSLATOR_WEIGHTS), TRANSLATOR_WEIGHTS)
    return loss


TOWER = tf.keras.Sequential(
    [tf.keras.layers.Dense(48, "relu"), tf.keras.layers.BatchNormalization(), tf.keras.layers.Dense(16)]
)
TOWER.build([None, 20])
MOMENTUM = tf.keras.optimizers.SGD(0.01, momentum=0.9)
MOMENTUM.build(TOWER.trainable_variables)


@tf.function
def contrasting(rows: Any) -> Any:
    """Train a Keras tower for a step to find the other view of the same row among those of all rows."""
    views = [rows * tf.cast(tf.random.uniform(rows.shape) > 0.2, tf.float32) for _ in range(2)]
    with tf.GradientTape() as tape:
        one, other = (tf.math.l2_normalize(TOWER(view, training=True), 1) for view in views)
        alike = tf.matmul(one, other, transpose_b=True) / 0.1
        labels = tf.range(rows.shape[0])
        there = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, alike)
        back = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, tf.transpose(alike))
        loss = tf.reduce_mean(there + back)
    MOMENTUM.apply(tape.gradient(loss, TOWER.trainable_variables), TOWER.trainable_variables)
    return loss


LOOKS = [variable(3, 3, 3, 8), variable(3, 3, 8, 12), variable(3, 3, 12, 16)]


@tf.function
def painting(picture: Any, style: Any) -> Any:
    """Change a picture for a step, so that its features go together as those of another."""

    def relate(seen: Any) -> list[Any]:
        found = []
        for weight in LOOKS:
            seen = tf.nn.relu(tf.nn.conv2d(seen, weight, 2, "SAME"))
            flat = tf.reshape(seen, [-1, seen.shape[3]])
            found.append(tf.matmul(flat, flat, transpose_a=True) / float(flat.shape[0]))
        return found

    wanted = relate(style)
    with tf.GradientTape() as tape:
        tape.watch(picture)
        losses = [tf.reduce_sum((a - b) ** 2) for a, b in zip(relate(picture), wanted, strict=True)]
        loss = tf.add_n(losses) + 1e-4 * tf.reduce_sum(tf.image.total_variation(picture))
    return tf.clip_by_value(picture - 0.1 * tf.sign(tape.gradient(loss, picture)), 0.0, 1.0)


@tf.function
def sketching(table: Any) -> Any:
    """Name the six main directions of a large table by those of a small one, made of random mixtures of its columns."""
    mixed = table @ tf.random.normal([60, 10])
    for _ in range(2):
        basis, _ = tf.linalg.qr(mixed)
        mixed = table @ tf.matmul(table, basis, transpose_a=True)
    basis, _ = tf.linalg.qr(mixed)
    weights, _, directions = tf.linalg.svd(tf.matmul(basis, table, transpose_a=True))
    signs = tf.sign(tf.reduce_sum(directions, 0))
    return weights[:6], (directions * signs)[:, :6]


MIND, OLD_MIND = ([variable(8, 40), variable(40, 40), variable(40, 5)] for _ in range(2))
HELD = [variable(500, 8), tf.Variable(tf.random.uniform([500], 0, 5, tf.int32)), variable(500), variable(500, 8)]


@tf.function
def choosing(seen: Any) -> Any:
    """Act once, keep what came of it, and learn for a step from 32 of the things kept."""

    def judge(weights: Any, x: Any) -> Any:
        return tf.nn.relu(tf.nn.relu(x @ weights[0]) @ weights[1]) @ weights[2]

    at = tf.random.uniform([1], 0, 500, tf.int32)
    best = tf.argmax(judge(MIND, seen), 1, tf.int32)
    done = tf.where(tf.random.uniform([1]) < 0.1, tf.random.uniform([1], 0, 5, tf.int32), best)
    then = tf.random.normal([1, 8])
    for table, row in zip(HELD, (seen, done, then[:, 0], then), strict=True):
        table.scatter_update(tf.IndexedSlices(row, at))
    drawn = tf.random.uniform([32], 0, 500, tf.int32)
    before, actions, rewards, after = (tf.gather(table, drawn) for table in HELD)
    hoped = rewards + 0.9 * tf.reduce_max(judge(OLD_MIND, after), 1)
    with tf.GradientTape() as tape:
        judged = tf.gather(judge(MIND, before), actions, batch_dims=1)
        off = tf.abs(hoped - judged)
        loss = tf.reduce_mean(tf.where(off < 1.0, 0.5 * off**2, off - 0.5))
    for weight, gradient in zip(MIND, tape.gradient(loss, MIND), strict=True):
        weight.assign_sub(0.01 * tf.clip_by_norm(gradient, 1.0))
    for old, new in zip(OLD_MIND, MIND, strict=True):
        old.assign_add(0.01 * (new - old))
    return loss


@tf.function
def hunting(start: Any) -> Any:
    """Follow hunters and hunted through time, by steps as long as the error allows."""

    def change(state: Any) -> Any:
        hares, foxes = tf.unstack(state, axis=1)
        return tf.stack([1.1 * hares - 0.4 * hares * foxes, 0.1 * hares * foxes - 0.4 * foxes], 1)

    state, time, step, rounds = start, tf.constant(0.0), tf.constant(0.1), 0
    while time < 4.0 and rounds < 30:
        a = change(state)
        b = change(state + step * 0.5 * a)
        c = change(state + step * 0.75 * b)
        after = state + step * (2.0 * a + 3.0 * b + 4.0 * c) / 9.0
        rough = state + step * (7.0 * a + 6.0 * b + 8.0 * c + 3.0 * change(after)) / 24.0
        error = tf.reduce_max(tf.abs(after - rough)) / 1e-3
        if error <= 1.0:
            state, time = after, time + step
        step *= tf.clip_by_value(0.9 * error ** (-1.0 / 3.0), 0.3, 3.0)
        rounds += 1
    return state


WIDE, DEEP = variable(300, 1), variable(300, 8)
CLICKS = [variable(32, 24), variable(24, 1)]
ADAGRAD = tf.keras.optimizers.Adagrad(0.05)
ADAGRAD.build([WIDE, DEEP, *CLICKS])


@tf.function
def clicking(words: Any, clicked: Any) -> Any:
    """Train for a step to say who clicks, by words that are hashed: weights of each, and of each two together."""
    places = tf.strings.to_hash_bucket_fast(tf.strings.lower(words), 300)
    with tf.GradientTape() as tape:
        wide = tf.reduce_sum(tf.nn.embedding_lookup(WIDE, places), [1, 2])
        deep = tf.nn.embedding_lookup(DEEP, places)
        pairs = 0.5 * tf.reduce_sum(tf.reduce_sum(deep, 1) ** 2 - tf.reduce_sum(deep**2, 1), 1)
        hidden = tf.nn.relu(tf.reshape(deep, [-1, 32]) @ CLICKS[0]) @ CLICKS[1]
        logits = wide + pairs + hidden[:, 0]
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(clicked, logits))
    ADAGRAD.apply(tape.gradient(loss, [WIDE, DEEP, *CLICKS]), [WIDE, DEEP, *CLICKS])
    return loss, tf.reduce_mean(tf.cast((logits > 0.0) == (clicked > 0.5), tf.float32))


SCENE = [variable(3, 3, 3, 12), variable(3, 3, 12, 24), variable(3, 3, 24, 18)]


@tf.function
def detecting(images: Any) -> Any:
    """Look for things in pictures: a box at each place, and of those that overlap the best."""
    seen = images
    for weight in SCENE[:-1]:
        seen = tf.nn.relu(tf.nn.conv2d(seen, weight, 2, "SAME"))
    said = tf.reshape(tf.nn.conv2d(seen, SCENE[-1], 1, "SAME"), [images.shape[0], -1, 9])
    middle, size = tf.sigmoid(said[..., :2]), tf.exp(said[..., 2:4]) * 0.2
    boxes = tf.concat([middle - 0.5 * size, middle + 0.5 * size], 2)
    kinds = tf.nn.softmax(said[..., 4:])
    found = []
    for own, scores in zip(tf.unstack(boxes), tf.unstack(tf.reduce_max(kinds, 2)), strict=True):
        kept = tf.image.non_max_suppression(own, scores, 10, 0.4)
        found.append(tf.concat([tf.gather(own, kept), tf.gather(scores, kept)[:, None]], 1))
    return tf.concat(found, 0)


HEAR, KEEP, RECALL = variable(38, 32), variable(32, 10), variable(32, 10)
ERASE, NOTE = variable(32, 10), variable(32, 10)


@tf.function
def remembering(heard: Any) -> Any:
    """Write what is heard into a table of 20 rows, and read it, where attention says."""
    table, read = tf.zeros([12, 20, 10]) + 1e-3, tf.zeros([12, 10])
    told = tf.TensorArray(tf.float32, 10)

    def attend(key: Any) -> Any:
        alike = tf.linalg.matvec(tf.math.l2_normalize(table, 2), tf.math.l2_normalize(key, 1))
        return tf.nn.softmax(5.0 * alike)

    for i in tf.range(10):
        state = tf.tanh(tf.concat([heard[i], read], 1) @ HEAR)
        there = attend(state @ KEEP)[:, :, None]
        table = table * (1.0 - there * tf.sigmoid(state @ ERASE)[:, None]) + there * tf.tanh(state @ NOTE)[:, None]
        read = tf.linalg.matvec(table, attend(state @ RECALL), transpose_a=True)
        told = told.write(i, read)
    return told.stack()


random = np.random.default_rng(29)
quantizing(tf.random.normal([96, 24]))
translating(*(tf.constant(random.integers(0, 60, [6, length])) for length in (9, 7, 7)))
contrasting(tf.random.normal([64, 20]))
painting(tf.random.uniform([1, 48, 48, 3]), tf.random.uniform([1, 48, 48, 3]))
sketching(tf.random.normal([80, 60]))
choosing(tf.random.normal([1, 8]))
hunting(tf.random.uniform([60, 2], 5.0, 10.0))
clicking(tf.constant(random.choice(["Red", "blue", "GREEN", "old", "New"], [48, 4])), tf.round(tf.random.uniform([48])))
detecting(tf.random.uniform([2, 48, 48, 3]))
remembering(tf.random.normal([10, 12, 28]))
