"""Train one linear model on a slice of the batch per GPU; the CPU keeps the weights, averages and updates."""

import tensorflow as tf

RATE = 0.1
towers = [gpu.name for gpu in tf.config.list_logical_devices("GPU")] or ["/CPU:0"]
with tf.device("/CPU:0"):
    weight = tf.Variable(tf.zeros([16, 1]), name="weight")
    bias = tf.Variable(tf.zeros([1]), name="bias")


def gradients(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.matmul(x, weight) + bias - y))
    return tape.gradient(loss, [weight, bias])


@tf.function
def train_step(x, y):
    slices = zip(tf.split(x, len(towers)), tf.split(y, len(towers)))
    of_towers = []
    for tower, (part_x, part_y) in zip(towers, slices):
        with tf.device(tower):
            of_towers.append(gradients(part_x, part_y))
    with tf.device("/CPU:0"):
        for variable, parts in zip([weight, bias], zip(*of_towers)):
            variable.assign_sub(RATE * tf.add_n(list(parts)) / len(towers))


with tf.device("/CPU:0"):
    batch, labels = tf.ones([64, 16]), tf.ones([64, 1])
train_step(batch, labels)
print("one step done")
