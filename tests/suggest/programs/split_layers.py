"""Layers over all GPUs by scopes, and gradients outside of them, so that GPU:0 computes all of these."""

import tensorflow as tf

WIDTH, LAYERS = 1024, 8
gpus = tf.config.list_logical_devices("GPU")
weights = []
for i in range(LAYERS):
    with tf.device(gpus[i * len(gpus) // LAYERS].name):
        weights.append(tf.Variable(tf.random.normal([WIDTH, WIDTH], stddev=0.03), name=f"w{i}"))


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        hidden = x
        for i, weight in enumerate(weights):
            with tf.device(gpus[i * len(gpus) // LAYERS].name):
                hidden = tf.nn.relu(tf.matmul(hidden, weight))
        loss = tf.reduce_mean(tf.square(hidden - y))
    gradients = tape.gradient(loss, weights)
    for weight, gradient in zip(weights, gradients, strict=True):
        weight.assign_sub(0.01 * gradient)
    return loss


print(train_step(tf.ones([256, WIDTH]), tf.ones([256, WIDTH])).shape)
