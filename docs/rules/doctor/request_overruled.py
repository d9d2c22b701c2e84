"""The assignment requests the GPU, and its variable is on the CPU."""

import tensorflow as tf

with tf.device("/CPU:0"):
    weight = tf.Variable([1.0, 2.0])


@tf.function
def step(x):
    with tf.device("/GPU:0"):
        weight.assign_add(x)


step(tf.ones([2]))
