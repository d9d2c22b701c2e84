"""The variable and its gradient are on GPU:1, the mean of its gradients is kept and computed on GPU:0."""

import tensorflow as tf

with tf.device("/GPU:1"):
    weight = tf.Variable(tf.ones([256, 256]))
speed = tf.Variable(tf.zeros([256, 256]))


@tf.function
def step(x):
    with tf.device("/GPU:1"):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.matmul(x, weight))
        gradient = tape.gradient(loss, weight)
    now = 0.9 * speed + gradient
    speed.assign(now)
    weight.assign_sub(0.01 * now)


step(tf.ones([64, 256]))
