"""XLA compiles a call for the GPU, and its variable is on the CPU."""

import tensorflow as tf

with tf.device("/CPU:0"):
    weight = tf.Variable([1.0, 2.0])


@tf.function(jit_compile=True)
def scale(x):
    return x * weight


scale(tf.ones([2]))
