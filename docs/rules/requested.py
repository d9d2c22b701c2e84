"""A product requests GPU:1 and gets it."""

import tensorflow as tf


@tf.function
def multiply(x):
    with tf.device("/GPU:1"):
        return tf.matmul(x, x)


print(multiply(tf.ones([4, 4])).shape)
