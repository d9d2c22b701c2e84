"""Split the first GPU in two logical ones, work on both, add the parts up on the CPU."""

import tensorflow as tf

gpus = tf.config.list_physical_devices("GPU")
if gpus:
    halves = [tf.config.LogicalDeviceConfiguration(memory_limit=1024) for _ in range(2)]
    tf.config.set_logical_device_configuration(gpus[0], halves)
places = [gpu.name for gpu in tf.config.list_logical_devices("GPU")] or ["/CPU:0"]


@tf.function
def work():
    parts = []
    for place in places:
        with tf.device(place):
            a = tf.random.normal([64, 64])
            parts.append(tf.matmul(a, a))
    with tf.device("/CPU:0"):
        return tf.add_n(parts)


print(work().shape)
