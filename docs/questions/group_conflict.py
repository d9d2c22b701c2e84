"""Pin a variable to a GPU, and count with it: the op that counts has kernels for the CPU only."""

import tensorflow.compat.v1 as tf

tf.disable_eager_execution()

with tf.device("/GPU:0"):
    ticks = tf.Variable(0, dtype=tf.int64, use_resource=False, name="ticks")
more = tf.count_up_to(ticks, 10, name="more")

config = tf.ConfigProto(allow_soft_placement=False)
with tf.Session(config=config) as session:
    session.run(ticks.initializer)
