"""Pin an int32 variable to a GPU, where it has no kernel: refused, unless `--soft` lets TensorFlow look elsewhere."""

import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
tf.disable_resource_variables()

with tf.device("/gpu:0"):
    count = tf.Variable(3, name="count")
    more = tf.assign_add(count, 1, name="more")

config = tf.ConfigProto(allow_soft_placement=False)
with tf.Session(config=config) as session:
    session.run(count.initializer)
    print(session.run(more))
