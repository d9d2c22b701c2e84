"""A variable is on the CPU, so whatever reads or writes it runs there."""

import tensorflow as tf

with tf.device("/CPU:0"):
    weight = tf.Variable(tf.ones([4, 4]))


@tf.function
def step(x):
    weight.assign_add(x)
    return tf.matmul(x, x)


print(step(tf.ones([4, 4])).shape)
