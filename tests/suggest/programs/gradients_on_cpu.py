"""Gradients under a CPU scope that was meant for the variables."""

import tensorflow as tf

weight = tf.Variable(tf.random.normal([1024, 1024], stddev=0.03))


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.matmul(tf.tanh(tf.matmul(x, weight)), weight) - y))
    with tf.device("/CPU:0"):
        gradient = tape.gradient(loss, weight)
        weight.assign_sub(0.01 * gradient)
    return loss


print(train_step(tf.ones([256, 1024]), tf.ones([256, 1024])).shape)
