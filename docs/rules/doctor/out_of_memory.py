"""A step needs more than the 32 MiB of a logical GPU."""

import tensorflow as tf

gpu = tf.config.list_physical_devices("GPU")[0]
tf.config.set_logical_device_configuration(gpu, [tf.config.LogicalDeviceConfiguration(memory_limit=32)])
weight = tf.Variable(tf.zeros([512, 512]))


@tf.function
def step(x):
    for _ in range(3):
        x = tf.nn.relu(x @ weight) + x
    return tf.reduce_sum(x)


step(tf.zeros([8000, 512]))
