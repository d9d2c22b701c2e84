"""Train one model on half of the batch per GPU; each tower updates the weights before the next one reads them."""

import tensorflow as tf

WIDTH = 1024
towers = [gpu.name for gpu in tf.config.list_logical_devices("GPU")] or ["/CPU:0"]
weights = [tf.Variable(tf.random.normal([WIDTH, WIDTH]) / WIDTH**0.5, name=f"w{i}") for i in range(4)]


@tf.function
def train_step(batch):
    for tower, part in zip(towers, tf.split(batch, len(towers))):
        with tf.device(tower):
            with tf.GradientTape() as tape:
                x = part
                for weight in weights:
                    x = tf.nn.relu(tf.matmul(x, weight))
                loss = tf.reduce_mean(tf.square(x))
            for weight, gradient in zip(weights, tape.gradient(loss, weights)):
                weight.assign_sub(0.01 * gradient)
    return loss


print(train_step(tf.ones([512, WIDTH])).shape)
