"""A product of int32 under a GPU scope: there is no such kernel, so soft placement puts it on the CPU."""

import tensorflow as tf

counts = tf.Variable(tf.ones([1024, 1024], dtype=tf.int32))


@tf.function
def step(x):
    with tf.device("/GPU:0"):
        total = tf.matmul(x, counts)
        return tf.nn.relu(tf.cast(total, tf.float32))


print(step(tf.ones([256, 1024], dtype=tf.int32)).shape)
