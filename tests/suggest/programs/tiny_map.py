"""map_fn over tiny vectors on a GPU: thousands of launches of nothing."""

import tensorflow as tf


@tf.function
def smooth(rows):
    return tf.map_fn(lambda row: tf.tanh(row * 0.5) + tf.reduce_mean(row), rows)


print(smooth(tf.ones([64, 4])).shape)
