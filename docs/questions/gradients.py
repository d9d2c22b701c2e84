"""Differentiate a product that is pinned to GPU:1."""

import tensorflow as tf

weights = tf.Variable(tf.ones([4, 4]), name="weights")


@tf.function
def step(x):
    with tf.GradientTape() as tape:
        with tf.device("/GPU:1"):
            product = tf.matmul(x, weights, name="product")
        loss = tf.reduce_sum(product)
    return tape.gradient(loss, weights)


step(tf.ones([2, 4]))
