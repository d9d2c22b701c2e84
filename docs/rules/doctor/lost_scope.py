"""The assignment to a reference variable is written under another device than the variable."""

import tensorflow.compat.v1 as tf

tf.disable_eager_execution()

with tf.device("/CPU:0"):
    weight = tf.Variable(1.0, use_resource=False, name="weight")
with tf.device("/GPU:0"):
    change = tf.assign(weight, 2.0, name="change")
with tf.Session() as session:
    session.run(change)
