"""Leave the GPU twice in a step: NumPy sorts on the host, and a norm requests the CPU; a dataset feeds it."""

import numpy as np
import tensorflow as tf

WIDTH = 512
weight = tf.Variable(tf.random.normal([WIDTH, WIDTH]))


@tf.function
def step(x):
    x = tf.matmul(x, weight)
    x = tf.ensure_shape(tf.numpy_function(np.sort, [x], tf.float32), [None, WIDTH])
    x = tf.nn.relu(tf.matmul(x, weight))
    with tf.device("/CPU:0"):
        x = x / tf.norm(x)
    return tf.reduce_sum(tf.matmul(x, weight))


for batch in tf.data.Dataset.from_tensor_slices(tf.ones([256, WIDTH])).batch(128).prefetch(1):
    print(step(batch).dtype)
