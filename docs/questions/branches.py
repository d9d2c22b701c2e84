"""Multiply six pairs of matrices that do not depend on each other, and sum up."""

import tensorflow as tf


@tf.function
def step(x):
    return tf.add_n([tf.matmul(x, x, name=f"product_{i}") for i in range(6)])


step(tf.ones([512, 512]))
