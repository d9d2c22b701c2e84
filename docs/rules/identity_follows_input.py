"""An Identity between two ops on the CPU stays with them."""

import tensorflow.compat.v1 as tf

tf.disable_eager_execution()

with tf.device("/CPU:0"):
    x = tf.random.uniform([4], name="x")
between = tf.identity(x, name="between")
with tf.device("/CPU:0"):
    y = tf.negative(between, name="y")
with tf.Session() as session:
    print(session.run(y).shape)
