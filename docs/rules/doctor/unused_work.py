"""A function is to be timed, but its products are never used."""

import tensorflow as tf


@tf.function
def multiply(x):
    for _ in range(10):
        tf.matmul(x, x)
    return tf.reduce_sum(x)


multiply(tf.ones([500, 500]))
