"""Multiply two matrices where TensorFlow likes it best, with its placement log on."""

import tensorflow as tf

tf.debugging.set_log_device_placement(True)


@tf.function
def multiply():
    a = tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    b = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    return tf.matmul(a, b)


print(multiply())
