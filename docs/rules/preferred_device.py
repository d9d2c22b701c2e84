"""A session has no default device: the best device with a kernel is taken."""

import tensorflow.compat.v1 as tf

tf.disable_eager_execution()

a = tf.ones([4, 4], name="a")
product = tf.matmul(a, a, name="product")
with tf.Session() as session:
    print(session.run(product).shape)
