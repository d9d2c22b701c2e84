"""A graph is run, extended, and run again: the variable stays where the first run put it."""

import tensorflow.compat.v1 as tf

tf.disable_eager_execution()

weight = tf.Variable(tf.ones([4, 4]), name="weight")
with tf.Session() as session:
    session.run(weight.initializer)
    doubled = tf.add(weight, weight, name="doubled")
    print(session.run(doubled).shape)
