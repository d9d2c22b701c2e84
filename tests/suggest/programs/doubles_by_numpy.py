"""float64 that no line names: NumPy computes in it, and TensorFlow takes its type."""

import numpy as np
import tensorflow as tf

rows = tf.constant(np.random.default_rng(1).random([1024, 2048]))
weight = tf.Variable(
    np.full([2048, 1024], 0.01),
    name="weight",
)


@tf.function
def step(x):
    return tf.nn.softmax(tf.matmul(x, weight))


print(step(rows).shape)
