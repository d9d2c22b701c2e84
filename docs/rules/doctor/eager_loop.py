"""A training step that is called again and again, and is not a tf.function."""

import tensorflow as tf

weight = tf.Variable(tf.ones([64, 64]))


def step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.nn.relu(tf.matmul(x, weight)) - 1.0))
    weight.assign_sub(0.1 * tape.gradient(loss, weight))


for _ in range(40):
    step(tf.ones([32, 64]))
