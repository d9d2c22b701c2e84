"""The assignment requests the GPU, but its variable is on the CPU."""

import tensorflow as tf

with tf.device("/CPU:0"):
    weight = tf.Variable(tf.ones([4, 4]))


@tf.function
def step(x):
    with tf.device("/GPU:0"):
        weight.assign_add(x)
        return tf.matmul(x, x)


print(step(tf.ones([4, 4])).shape)
