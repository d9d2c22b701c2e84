"""Assign to one variable twice, in no order (a TensorFlow 1 graph)."""

import tensorflow.compat.v1 as tf

tf.disable_eager_execution()

count = tf.Variable(0.0, use_resource=True, name="count")
reset = count.assign(0.0, name="reset", read_value=False)
add = count.assign_add(1.0, name="add", read_value=False)
both = tf.group(reset, add)

with tf.Session() as session:
    session.run(count.initializer)
    session.run(both)
