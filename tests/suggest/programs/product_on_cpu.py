"""A product that was put on the CPU while somebody looked for an error, and its weight with it."""

import tensorflow as tf

with tf.device("/CPU:0"):
    weight = tf.Variable(tf.random.normal([1024, 1024]))


@tf.function
def step(x):
    with tf.device("/CPU:0"):
        hidden = tf.matmul(x, weight)
    hidden = tf.nn.relu(hidden)
    return tf.reduce_sum(tf.matmul(hidden, hidden, transpose_b=True))


print(step(tf.ones([512, 1024])).shape)
