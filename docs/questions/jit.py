"""Compile a function with XLA while its variable is on another device."""

import tensorflow as tf

with tf.device("/CPU:0"):
    weights = tf.Variable(tf.ones([4, 4]), name="weights")


@tf.function(jit_compile=True)
def inner(x):
    return tf.matmul(x, weights)


@tf.function
def step(x):
    return inner(x)


step(tf.ones([2, 4]))
