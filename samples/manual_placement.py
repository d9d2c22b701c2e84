"""Make the operands on the CPU by hand; the product still goes where TensorFlow likes it best."""

import tensorflow as tf


@tf.function
def multiply():
    with tf.device("/CPU:0"):
        a = tf.random.normal([3, 256])
        b = tf.random.normal([256, 2])
    return tf.matmul(a, b)


print(multiply().shape)
