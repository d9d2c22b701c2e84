"""TensorFlow 1: a replica device setter that became a scope over everything."""

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
with tf.device("/cpu:0"):
    x = tf.placeholder(tf.float32, [256, 784])
    hidden = tf.get_variable("hidden", [784, 1024])
    out = tf.get_variable("out", [1024, 10])
    logits = tf.matmul(tf.nn.relu(tf.matmul(x, hidden)), out)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    print(session.run(logits, {x: np.ones([256, 784])}).shape)
