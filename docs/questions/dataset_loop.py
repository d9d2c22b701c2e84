"""Loop over a dataset inside a tf.function."""

import tensorflow as tf

numbers = tf.data.Dataset.range(4)
weights = tf.Variable(tf.ones([2, 2]), name="weights")


@tf.function
def total():
    product = tf.zeros([2, 2])
    for number in numbers:
        product += tf.cast(number, tf.float32) * tf.matmul(weights, weights)
    return product


total()
