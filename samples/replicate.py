"""Repeat a product on every GPU that is there and add the results up on the CPU."""

import tensorflow as tf

gpus = tf.config.list_logical_devices("GPU")


@tf.function
def replicate():
    products = []
    for gpu in gpus or tf.config.list_logical_devices("CPU"):
        with tf.device(gpu.name):
            a = tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
            b = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
            products.append(tf.matmul(a, b))
    with tf.device("/CPU:0"):
        return tf.add_n(products)


print(replicate().shape)
