"""The shape of a tensor on the CPU is looked up on the CPU."""

import tensorflow.compat.v1 as tf

tf.disable_eager_execution()

with tf.device("/CPU:0"):
    table = tf.random.uniform([4, 4], name="table")
shape = tf.raw_ops.Shape(input=table, name="shape")
like = tf.random.uniform(shape, name="like")
with tf.Session() as session:
    print(session.run(like).shape)
