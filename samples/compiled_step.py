"""A train step that XLA compiles, and its input: functions that a dataset calls, one of them on a GPU."""

import tensorflow as tf

gpus = tf.config.list_logical_devices("GPU")
scale = tf.Variable(0.5)
weights = tf.Variable(tf.ones([4, 2]))


def normalize(x):
    return tf.cast(x, tf.float32) * scale


def augment(x):
    with tf.device(gpus[-1].name if gpus else "/CPU:0"):
        return tf.stack([x, -x, x * x, tf.ones_like(x)])


@tf.function(jit_compile=True)
def gradient(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.nn.relu(tf.linalg.matvec(weights, x, transpose_a=True)))
    return tape.gradient(loss, weights)


@tf.function
def train_step(x):
    weights.assign_sub(0.1 * gradient(x))


for batch in tf.data.Dataset.range(6).map(normalize).map(augment):
    train_step(batch)
