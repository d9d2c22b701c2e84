"""Train on a slice of the batch per GPU with the weights spread over the GPUs: better where links are fast."""

import tensorflow as tf

RATE = 0.1
towers = [gpu.name for gpu in tf.config.list_logical_devices("GPU")] or ["/CPU:0"]
sizes = [16, 32, 32, 1]
layers = []
for i, (rows, columns) in enumerate(zip(sizes, sizes[1:])):
    with tf.device(towers[i % len(towers)]):
        layers.append(tf.Variable(tf.zeros([rows, columns]), name=f"layer{i}"))


def gradients(x, y):
    with tf.GradientTape() as tape:
        for layer in layers:
            x = tf.nn.relu(tf.matmul(x, layer))
        loss = tf.reduce_mean(tf.square(x - y))
    return tape.gradient(loss, layers)


@tf.function
def train_step(x, y):
    of_towers = []
    for tower, part_x, part_y in zip(towers, tf.split(x, len(towers)), tf.split(y, len(towers))):
        with tf.device(tower):
            of_towers.append(gradients(part_x, part_y))
    for layer, parts in zip(layers, zip(*of_towers)):
        with tf.device(layer.device):
            layer.assign_sub(RATE * tf.add_n(list(parts)) / len(towers))


train_step(tf.ones([64, 16]), tf.ones([64, 1]))
print("one step done")
