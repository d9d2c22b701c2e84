"""Ten more programs for the schedule simulation, written when new nodes had been measured in steps of several sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf


def variable(*shape: int) -> tf.Variable:
    """Make a variable of small random numbers."""
    return tf.Variable(tf.random.normal(shape, stddev=0.1))


@tf.function
def carving(picture: Any) -> Any:
    """Find the path from the top of a picture to its bottom that crosses the least edges, and cut it out."""
    edges = tf.reduce_sum(tf.abs(tf.image.sobel_edges(picture[None])), [0, 3, 4])
    costs = tf.TensorArray(tf.float32, 24).write(0, edges[0])
    below = edges[0]
    for row in tf.range(1, 24):
        left, right = tf.concat([[1e9], below[:-1]], 0), tf.concat([below[1:], [1e9]], 0)
        below = edges[row] + tf.minimum(tf.minimum(left, right), below)
        costs = costs.write(row, below)
    table, at = costs.stack(), tf.argmin(below, output_type=tf.int32)
    path = tf.TensorArray(tf.int32, 24).write(23, at)
    for row in tf.range(22, -1, -1):
        first = tf.maximum(at - 1, 0)
        at = first + tf.argmin(table[row, first : at + 2], output_type=tf.int32)
        path = path.write(row, at)
    kept = tf.range(32)[None] != path.stack()[:, None]
    return tf.reshape(tf.boolean_mask(picture, kept), [24, 31, 3])


@tf.function
def judging(said: Any, labels: Any) -> Any:
    """Tell in five ways how good what a classifier says is."""
    shares = tf.nn.softmax(said)
    guessed = tf.argmax(said, 1, tf.int32)
    confused = tf.cast(tf.math.confusion_matrix(labels, guessed, 6), tf.float32)
    hits = tf.linalg.diag_part(confused)
    precision = tf.math.divide_no_nan(hits, tf.reduce_sum(confused, 0))
    recall = tf.math.divide_no_nan(hits, tf.reduce_sum(confused, 1))
    f1 = tf.reduce_mean(tf.math.divide_no_nan(2.0 * precision * recall, precision + recall))
    among_two = tf.reduce_mean(tf.cast(tf.math.in_top_k(labels, said, 2), tf.float32))
    positive = labels == 0
    limits = tf.linspace(0.0, 1.0, 50)[:, None]
    called = shares[None, :, 0] >= limits
    caught = tf.reduce_mean(tf.cast(tf.boolean_mask(called, positive, axis=1), tf.float32), 1)
    wrongly = tf.reduce_mean(tf.cast(tf.boolean_mask(called, ~positive, axis=1), tf.float32), 1)
    area = tf.reduce_sum((wrongly[:-1] - wrongly[1:]) * 0.5 * (caught[:-1] + caught[1:]))
    doubt = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, said))
    return tf.stack([f1, among_two, area, doubt, tf.reduce_sum(hits) / tf.reduce_sum(confused)])


@tf.function
def boosting(rows: Any, signs: Any) -> Any:
    """Let six stumps vote: each is the best question on those rows that the others are wrong about."""
    limits = tf.linspace(-1.5, 1.5, 12)
    answers = tf.sign(rows[:, :, None] - limits)
    weights, vote = tf.fill([120], 1.0 / 120.0), tf.zeros([120])
    for _ in range(6):
        wrong = tf.cast(answers != signs[:, None, None], tf.float32)
        errors = tf.reshape(tf.einsum("n,nfl->fl", weights, wrong), [-1])
        errors = tf.concat([errors, 1.0 - errors], 0)
        best = tf.argmin(errors)
        error = tf.clip_by_value(errors[best], 1e-6, 0.5)
        turned = tf.where(best < 96, 1.0, -1.0)
        said = turned * tf.gather(tf.reshape(answers, [120, -1]), best % 96, axis=1)
        say = 0.5 * tf.math.log((1.0 - error) / error)
        vote += say * said
        weights *= tf.exp(-say * said * signs)
        weights /= tf.reduce_sum(weights)
    return tf.reduce_mean(tf.cast(vote * signs > 0.0, tf.float32))


@tf.function
def drifting(before: Any, after: Any) -> Any:
    """Say where each place of a picture has moved to, smoothly, in twelve rounds."""
    across = tf.constant([[-1.0, 1.0], [-1.0, 1.0]])[:, :, None, None] / 4.0
    down = tf.transpose(across, [1, 0, 2, 3])
    around = tf.constant([[1.0, 2.0, 1.0], [2.0, 0.0, 2.0], [1.0, 2.0, 1.0]])[:, :, None, None] / 12.0
    both = before + after
    x, y = tf.nn.conv2d(both, across, 1, "SAME"), tf.nn.conv2d(both, down, 1, "SAME")
    time = after - before
    u, v = tf.zeros_like(before), tf.zeros_like(before)
    for _ in tf.range(12):
        near_u, near_v = tf.nn.conv2d(u, around, 1, "SAME"), tf.nn.conv2d(v, around, 1, "SAME")
        pull = (x * near_u + y * near_v + time) / (0.1 + x**2 + y**2)
        u, v = near_u - x * pull, near_v - y * pull
    return tf.concat([u, v], 3)


FLAT, SPEED = variable(80, 2), tf.Variable(tf.zeros([80, 2]))


@tf.function
def unfolding(rows: Any) -> Any:
    """Move points of a plane for a step, so that those of similar rows are near each other."""

    def relate(points: Any) -> Any:
        squares = tf.reduce_sum(points**2, 1)
        return squares[:, None] + squares[None] - 2.0 * tf.matmul(points, points, transpose_b=True)

    diagonal = tf.eye(80)
    wanted = tf.exp(-0.5 * relate(rows)) * (1.0 - diagonal)
    wanted /= tf.reduce_sum(wanted, 1, keepdims=True)
    wanted = (wanted + tf.transpose(wanted)) / 160.0
    heavy = (1.0 - diagonal) / (1.0 + relate(FLAT))
    seen = heavy / tf.reduce_sum(heavy)
    push = (wanted - seen) * heavy
    slope = 4.0 * (tf.reduce_sum(push, 1, keepdims=True) * FLAT - push @ FLAT)
    SPEED.assign(0.8 * SPEED - 20.0 * slope)
    FLAT.assign_add(SPEED)
    FLAT.assign(FLAT - tf.reduce_mean(FLAT, 0, keepdims=True))
    return tf.reduce_sum(wanted * tf.math.log((wanted + 1e-9) / (seen + 1e-9)))


TEACHER = tf.keras.Sequential([tf.keras.layers.Dense(96, "gelu"), tf.keras.layers.Dense(96, "gelu")])
TEACHER.add(tf.keras.layers.Dense(10))
STUDENT = tf.keras.Sequential([tf.keras.layers.Dense(24, "relu"), tf.keras.layers.Dropout(0.2)])
STUDENT.add(tf.keras.layers.Dense(10))
for model in (TEACHER, STUDENT):
    model.build([None, 30])
ADAMW = tf.keras.optimizers.AdamW(1e-3)
ADAMW.build(STUDENT.trainable_variables)


@tf.function
def distilling(rows: Any, labels: Any) -> Any:
    """Train a small Keras model for a step to say what a large one says."""
    taught = tf.nn.softmax(TEACHER(rows, training=False) / 3.0)
    with tf.GradientTape() as tape:
        said = STUDENT(rows, training=True)
        alike = tf.reduce_mean(tf.reduce_sum(taught * (tf.math.log(taught + 1e-9) - tf.nn.log_softmax(said / 3.0)), 1))
        right = tf.reduce_mean(tf.keras.losses.sparse_categorical_crossentropy(labels, said, from_logits=True))
        loss = 0.7 * 9.0 * alike + 0.3 * right
    ADAMW.apply(tape.gradient(loss, STUDENT.trainable_variables), STUDENT.trainable_variables)
    return loss


ATOMS = tf.math.l2_normalize(tf.random.normal([40, 90]), 0)


@tf.function
def pursuing(heard: Any) -> Any:
    """Explain sounds by few of ninety atoms: shrink and correct until little changes."""
    code = ahead = tf.zeros([90, heard.shape[1]])
    pace, moved, rounds = tf.constant(1.0), tf.constant(1.0), 0
    while moved > 1e-3 and rounds < 20:
        off = tf.matmul(ATOMS, ATOMS @ ahead - heard, transpose_a=True)
        stepped = ahead - 0.15 * off
        after = tf.sign(stepped) * tf.nn.relu(tf.abs(stepped) - 0.02)
        next_pace = 0.5 * (1.0 + tf.sqrt(1.0 + 4.0 * pace**2))
        ahead = after + (pace - 1.0) / next_pace * (after - code)
        moved = tf.norm(after - code) / (tf.norm(after) + 1e-6)
        code, pace, rounds = after, next_pace, rounds + 1
    return tf.math.count_nonzero(code, 0)


PRICES = variable(9, 1)


@tf.function
def parsing(lines: Any) -> Any:
    """Read lines of a table, mend what is missing, and say what each thing costs."""
    clean = tf.strings.regex_replace(tf.strings.lower(lines), " *; *", ",")
    rooms, size, kind, year = tf.io.decode_csv(clean, [[3.0], [80.0], [""], [1990]])
    number = tf.where(kind == "flat", 0, tf.where(kind == "house", 1, 2))
    age = tf.cast(2026 - year, tf.float32)
    old = tf.cast(tf.searchsorted(tf.constant([10.0, 40.0, 90.0]), age), tf.int32)
    numbers = tf.stack([rooms, tf.math.log(size)], 1)
    numbers = (numbers - tf.reduce_mean(numbers, 0)) / (tf.math.reduce_std(numbers, 0) + 1e-6)
    features = tf.concat([numbers, tf.one_hot(number, 3), tf.one_hot(old, 4)], 1)
    return tf.strings.join([kind, tf.strings.as_string(tf.squeeze(features @ PRICES, 1), precision=2)], ": ")


FAST = [variable(1, 32), tf.Variable(tf.zeros([32])), variable(32, 1)]


@tf.function
def adapting(seen: Any, wanted: Any) -> Any:
    """Train a network for a step to learn each of four waves within two steps."""

    def answer(weights: Any, x: Any) -> Any:
        return tf.tanh(x @ weights[0] + weights[1]) @ weights[2]

    losses = []
    with tf.GradientTape() as outer:
        for x, y in zip(tf.unstack(seen), tf.unstack(wanted), strict=True):
            weights: list[Any] = [tf.identity(weight) for weight in FAST]
            for _ in range(2):
                with tf.GradientTape() as inner:
                    inner.watch(weights)
                    loss = tf.reduce_mean((answer(weights, x[:8]) - y[:8]) ** 2)
                slopes = inner.gradient(loss, weights)
                weights = [weight - 0.1 * slope for weight, slope in zip(weights, slopes, strict=True)]
            losses.append(tf.reduce_mean((answer(weights, x[8:]) - y[8:]) ** 2))
        total = tf.add_n(losses)
    for weight, gradient in zip(FAST, outer.gradient(total, FAST), strict=True):
        weight.assign_sub(0.01 * gradient)
    return total


REVIEWED = tf.keras.layers.Embedding(50, 12, mask_zero=True)
REVIEWER, VERDICT = tf.keras.layers.LSTM(16), tf.keras.layers.Dense(1)
REVIEW_LAYERS = [REVIEWED, REVIEWER, VERDICT]
VERDICT(REVIEWER(REVIEWED(tf.zeros([1, 8], tf.int32))))
REVIEW_WEIGHTS = [weight for layer in REVIEW_LAYERS for weight in layer.trainable_variables]
RMSPROP = tf.keras.optimizers.RMSprop(1e-3)
RMSPROP.build(REVIEW_WEIGHTS)


@tf.function
def reviewing(words: Any, liked: Any) -> Any:
    """Train Keras layers for a step to say whether reviews of at most eight words are kind."""
    with tf.GradientTape() as tape:
        logits = VERDICT(REVIEWER(REVIEWED(words)))[:, 0]
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(liked, logits))
    RMSPROP.apply(tape.gradient(loss, REVIEW_WEIGHTS), REVIEW_WEIGHTS)
    return loss


random = np.random.default_rng(31)
carving(tf.random.uniform([24, 32, 3]))
judging(tf.random.normal([90, 6]), tf.constant(random.integers(0, 6, [90]), tf.int32))
boosting(tf.random.normal([120, 8]), tf.sign(tf.random.normal([120])))
drifting(tf.random.uniform([1, 32, 32, 1]), tf.random.uniform([1, 32, 32, 1]))
unfolding(tf.random.normal([80, 5]))
distilling(tf.random.normal([40, 30]), tf.constant(random.integers(0, 10, [40])))
pursuing(tf.random.normal([40, 6]))
parsing(tf.constant([f"{n % 5 + 1} ; {40 + n};{('Flat', 'House', 'Barn')[n % 3]}; {1900 + 3 * n}" for n in range(40)]))
adapting(tf.random.uniform([4, 20, 1], -3.0, 3.0), tf.random.normal([4, 20, 1]))
reviewing(tf.constant(random.integers(0, 50, [10, 8])), tf.round(tf.random.uniform([10])))
