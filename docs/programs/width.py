"""Train three kinds of network for a step each: how many of their ops can run at once differs."""

import tensorflow as tf


def weights(*shape):
    """Make a variable."""
    return tf.Variable(tf.random.normal(shape, stddev=0.05))


def step(loss_of, variables, *inputs):
    """Descend along the gradients of a loss."""
    with tf.GradientTape() as tape:
        loss = loss_of(*inputs)
    for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
        variable.assign_sub(0.1 * gradient)
    return loss


LAYERS = [weights(512, 512) for _ in range(4)]


@tf.function
def mlp(x):
    """Train four dense layers: each needs the one before."""

    def loss(value):
        for layer in LAYERS:
            value = tf.nn.relu(tf.matmul(value, layer))
        return tf.reduce_mean(value)

    return step(loss, LAYERS, x)


INPUT, STATE = weights(64, 256), weights(256, 256)


@tf.function
def rnn(sequence):
    """Train a recurrent cell, unrolled over eight time steps: each needs the one before."""

    def loss(value):
        state = tf.zeros([32, 256])
        for moment in tf.unstack(value):
            state = tf.tanh(tf.matmul(moment, INPUT) + tf.matmul(state, STATE))
        return tf.reduce_mean(state)

    return step(loss, [INPUT, STATE], sequence)


FILTERS = [weights(3, 3, 3, 32), weights(3, 3, 32, 64), weights(3, 3, 64, 64)]


@tf.function
def cnn(images):
    """Train three layers of convolution and pooling."""

    def loss(value):
        for one in FILTERS:
            value = tf.nn.max_pool2d(tf.nn.relu(tf.nn.conv2d(value, one, 1, "SAME")), 2, 2, "SAME")
        return tf.reduce_mean(value)

    return step(loss, FILTERS, images)


mlp(tf.ones([128, 512]))
rnn(tf.ones([8, 32, 64]))
cnn(tf.ones([16, 32, 32, 3]))
