"""Towers by hand whose weights, sums and updates are kept on the CPU."""

import tensorflow as tf

WIDTH = 1024
gpus = tf.config.list_logical_devices("GPU")
with tf.device("/CPU:0"):
    weight = tf.Variable(tf.random.normal([WIDTH, WIDTH], stddev=0.03))


def gradient_of(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.matmul(x, weight) - y))
    return tape.gradient(loss, weight)


@tf.function
def train_step(x, y):
    found = []
    for gpu, part, wanted in zip(gpus, tf.split(x, len(gpus)), tf.split(y, len(gpus)), strict=True):
        with tf.device(gpu.name):
            found.append(gradient_of(part, wanted))
    with tf.device("/CPU:0"):
        weight.assign_sub(0.01 * tf.add_n(found))


train_step(tf.ones([512, WIDTH]), tf.ones([512, WIDTH]))
print("one step")
