"""Add int32 and float32 numbers on a GPU."""

import tensorflow as tf


@tf.function
def add(i, x):
    with tf.device("/GPU:0"):
        counted = tf.add(i, i, name="counted")
        added = tf.add(x, x, name="added")
    return counted, added


add(tf.constant([1, 2]), tf.constant([1.0, 2.0]))
