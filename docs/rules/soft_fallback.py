"""A product requests GPU:7, which is not there."""

import tensorflow as tf


@tf.function
def multiply(x):
    with tf.device("/GPU:7"):
        return tf.matmul(x, x)


print(multiply(tf.ones([4, 4])).shape)
