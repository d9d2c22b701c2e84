"""A layer is built under GPU:1, and called outside of that scope."""

import keras
import tensorflow as tf

with tf.device("/GPU:1"):
    layer = keras.layers.Dense(4)
    layer.build((None, 8))


@tf.function
def predict(x):
    return layer(x)


predict(tf.ones([2, 8]))
