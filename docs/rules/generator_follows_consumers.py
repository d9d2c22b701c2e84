"""A constant is used on the CPU only, so it is made there."""

import tensorflow.compat.v1 as tf

tf.disable_eager_execution()

two = tf.constant(2.0, name="two")
with tf.device("/CPU:0"):
    x = tf.random.uniform([4], name="x")
    y = tf.multiply(x, two, name="y")
with tf.Session() as session:
    print(session.run(y).shape)
