"""Ask for the placement log after the first op."""

import tensorflow as tf

weights = tf.Variable(tf.ones([2, 2]))
tf.debugging.set_log_device_placement(True)


@tf.function
def step(x):
    return tf.matmul(x, weights)


step(tf.ones([2, 2]))
