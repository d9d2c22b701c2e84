"""The function is called under the CPU, so a product that requests nothing runs there."""

import tensorflow as tf


@tf.function
def multiply(x):
    return tf.matmul(x, x)


with tf.device("/CPU:0"):
    print(multiply(tf.ones([4, 4])).shape)
