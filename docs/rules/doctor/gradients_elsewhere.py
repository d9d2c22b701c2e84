"""The product is on GPU:1, and its gradient is computed on GPU:0."""

import tensorflow as tf

with tf.device("/GPU:1"):
    weight = tf.Variable(tf.ones([256, 256]))


@tf.function
def step(x):
    with tf.GradientTape() as tape:
        with tf.device("/GPU:1"):
            loss = tf.reduce_sum(tf.matmul(tf.tanh(tf.matmul(x, weight)), weight))
    weight.assign_sub(0.01 * tape.gradient(loss, weight))


step(tf.ones([64, 256]))
