"""Functions that XLA compiles, and functions that kernels call: those of datasets, eager and in functions."""

import contextlib

import tensorflow as tf

GPUS = [gpu.name for gpu in tf.config.list_logical_devices("GPU")]
count = tf.data.Dataset.range


def last():
    return tf.device(GPUS[-1] if GPUS else "/CPU:0")


weight = tf.Variable(2.0)
with last():
    other = tf.Variable(3.0)


@tf.function
def triple(x):
    return x * 3


def on_last(x):
    with last():
        return tf.cast(x, tf.float32) * other + weight


def parsed(x):
    return {"text": tf.strings.as_string(x), "number": x}, tf.one_hot(x, 4)


def walk(dataset):
    with contextlib.suppress(tf.errors.OpError):
        for _ in dataset.take(2):
            pass


walk(count(9).map(on_last))
walk(count(9).map(parsed, num_parallel_calls=2).batch(2))
walk(count(9).flat_map(lambda x: count(x).map(lambda y: y + x)))
walk(count(9).interleave(lambda x: count(3).filter(lambda y: y > x), num_parallel_calls=2))
walk(count(9).scan(tf.constant(0, tf.int64), lambda state, x: (state + x, state)))
walk(count(9).group_by_window(lambda x: x % 2, lambda key, window: window.batch(2), window_size=2))
walk(count(9).take_while(lambda x: x < 5).map(lambda x: triple(x) + triple(x)))
walk(count(9).map(lambda x: tf.cond(x > 2, lambda: x, lambda: -x)))
walk(count(9).map(lambda x: tf.while_loop(lambda i: i < x, lambda i: i + 1, [tf.constant(0, tf.int64)])[0]))
walk(count(9).map(lambda x: tf.py_function(lambda a: a + 1, [x], tf.int64)))
walk(tf.data.Dataset.from_generator(lambda: iter([1, 2]), output_signature=tf.TensorSpec([], tf.int32)))
with contextlib.suppress(tf.errors.OpError):
    count(3).reduce(0.0, lambda total, x: total + tf.cast(x, tf.float32))


@tf.function(jit_compile=True)
def compiled(x):
    return tf.tanh(x) @ x


@tf.function
def calls_compiled(x):
    with last():
        y = compiled(x)
    return compiled(y) + 1.0


@tf.function
def walks_inside(n):
    total = tf.constant(0, tf.int64)
    for element in count(n).map(lambda x: x * 7):
        total += element
    return total


compiled(tf.ones([2, 2]))
calls_compiled(tf.ones([2, 2]))
with tf.device("/CPU:0"):
    walks_inside(tf.constant(3, tf.int64))
