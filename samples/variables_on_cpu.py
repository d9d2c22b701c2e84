"""Keep a variable and a constant on the CPU; the product requests nothing (a TensorFlow 1 graph)."""

import tensorflow.compat.v1 as tf

tf.disable_eager_execution()

with tf.device("/cpu:0"):
    a = tf.Variable(3.0, name="a")
    b = tf.constant(4.0, name="b")
c = tf.multiply(a, b, name="mul")

with tf.Session() as session:
    session.run(a.initializer)
    print(session.run(c))
