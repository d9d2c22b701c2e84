"""Pin the branches of a tf.cond to devices of their own."""

import tensorflow as tf


@tf.function
def choose(x):
    def product():
        with tf.device("/GPU:1"):
            return tf.matmul(x, x)

    def total():
        with tf.device("/CPU:0"):
            return tf.add(x, x)

    with tf.device("/GPU:0"):
        return tf.cond(tf.reduce_sum(x) > 0, product, total)


choose(tf.ones([2, 2]))
