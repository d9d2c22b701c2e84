"""Train a wide network for a step (the batch is what the question is about)."""

import tensorflow as tf

WIDTH = 512
weights = [tf.Variable(tf.random.normal([WIDTH, WIDTH]) / WIDTH) for _ in range(4)]
momenta = [tf.Variable(tf.zeros([WIDTH, WIDTH])) for _ in weights]


@tf.function
def train(x, y):
    with tf.GradientTape() as tape:
        for weight in weights:
            x = tf.nn.relu(tf.matmul(x, weight))
        loss = tf.reduce_mean(tf.square(x - y))
    for weight, momentum, gradient in zip(weights, momenta, tape.gradient(loss, weights), strict=True):
        momentum.assign(0.9 * momentum + gradient)
        weight.assign_sub(0.01 * momentum)
    return loss


train(tf.zeros([48, WIDTH]), tf.ones([48, WIDTH]))
