"""Put device scopes inside a while loop and a condition: TensorFlow honours them in the bodies."""

import tensorflow as tf


@tf.function
def iterate(x, steps):
    for _ in tf.range(steps):
        with tf.device("/GPU:0"):
            x = tf.matmul(x, x)
        if tf.reduce_max(x) > 1e3:
            with tf.device("/CPU:0"):
                x = x / tf.norm(x)
        else:
            with tf.device("/GPU:1"):
                x = x + 1.0
    return x


print(iterate(tf.eye(4), tf.constant(3)).shape)
