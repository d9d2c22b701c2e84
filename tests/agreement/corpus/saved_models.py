"""SavedModels and checkpoints: loaded under device scopes, called from functions, with the resources they make anew."""

import contextlib
import tempfile

import numpy as np
import tensorflow as tf

GPUS = [gpu.name for gpu in tf.config.list_logical_devices("GPU")]
FIRST, LAST = (GPUS[0], GPUS[-1]) if GPUS else ("/CPU:0", "/CPU:0")


def attempt(function, *arguments, **named):
    """Call a function; one that is refused, or fails when it runs, has been placed all the same.

    On a cluster a function does the saving, on emulated GPUs, so that there is no file to load.
    """
    with contextlib.suppress(tf.errors.OpError, NotImplementedError, FileNotFoundError):
        return function(*arguments, **named)


class Model(tf.Module):
    def __init__(self):
        with tf.device(LAST):
            self.weights = tf.Variable(tf.ones([3, 3]), name="weights")
        with tf.device("/CPU:0"):
            self.steps = tf.Variable(0, dtype=tf.int64, name="steps")
            words = tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([1, 2], tf.int64))
            self.words = tf.lookup.StaticHashTable(words, 0)
        self.seen = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, 0)
        self.noise = tf.random.Generator.from_seed(3)

    @tf.function(input_signature=[tf.TensorSpec([None, 3]), tf.TensorSpec([None], tf.string)])
    def look_up(self, rows, words):
        with tf.device(FIRST):
            product = tf.matmul(rows, self.weights)
        numbers = self.words.lookup(words)
        self.seen.insert(words, numbers)
        self.steps.assign_add(tf.reduce_sum(numbers))
        return product + self.noise.normal([3]), numbers + self.seen.size()


ROWS, WORDS = tf.constant(np.ones((2, 3), "float32")), tf.constant(["a", "c"])
model, folder = Model(), tempfile.mkdtemp()
tf.saved_model.save(model, folder, signatures={"serve": model.look_up})
attempt(model.look_up, ROWS, WORDS)

for scope in ("", "/CPU:0", FIRST, LAST):
    with tf.device(scope or None):
        loaded = attempt(tf.saved_model.load, folder)  # hard placement knows no CPU:7 beside a GPU:7
        if loaded is None:
            continue
        attempt(loaded.look_up, ROWS, WORDS)
    attempt(loaded.signatures["serve"], rows=ROWS, words=WORDS)

    @tf.function
    def calls(rows, words, loaded=loaded):
        with tf.device(LAST):
            ours = loaded.look_up(rows, words)
        with tf.device("/CPU:0"):
            served = loaded.signatures["serve"](rows=rows, words=words)
        return ours, served, loaded.weights * 2.0

    attempt(calls, ROWS, WORDS)

checkpoint = tf.train.Checkpoint(weights=model.weights, steps=model.steps, noise=model.noise)
with tf.device(FIRST):
    attempt(checkpoint.restore, checkpoint.save(f"{folder}/checkpoint"))
