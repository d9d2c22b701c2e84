"""Make x and y wait for a and b (b alone would do, since b needs a); z waits through them (a TensorFlow 1 graph)."""

import tensorflow.compat.v1 as tf

tf.disable_eager_execution()

a = tf.constant([[1.0, 2.0], [3.0, 4.0]], name="a")
b = tf.add(a, 1.0, name="b")
with tf.control_dependencies([a, b]):
    with tf.device("/gpu:0"):
        x = tf.matmul(tf.ones([2, 2]), tf.ones([2, 2]), name="x")
    y = tf.identity(tf.ones([2, 2]), name="y")
z = tf.add(x, y, name="z")

config = tf.ConfigProto(allow_soft_placement=True)
with tf.Session(config=config) as session:
    print(session.run(z).shape)
