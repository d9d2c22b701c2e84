"""A loop counts in an argument that is on the CPU."""

import tensorflow as tf


@tf.function
def halve(x):
    return tf.while_loop(lambda x: tf.reduce_sum(x) > 1.0, lambda x: x / 2.0, [x])


with tf.device("/CPU:0"):
    start = tf.ones([4])
print(halve(start)[0].shape)
