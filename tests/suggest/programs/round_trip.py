"""A host round trip in a chain: the op in the middle has been given a CPU scope that it does not need."""

import tensorflow as tf

weights = [tf.Variable(tf.random.normal([1024, 1024], stddev=0.03)) for _ in range(2)]


@tf.function
def step(x):
    x = tf.matmul(x, weights[0])
    with tf.device("/CPU:0"):
        x = tf.clip_by_value(x, -1.0, 1.0)
    return tf.reduce_sum(tf.matmul(x, weights[1]))


print(step(tf.ones([1024, 1024])).shape)
