"""A TensorFlow 1 program as it is migrated: the import and disable_v2_behavior are new, the rest is as it was."""

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()


def dense(x, units, name):
    with tf.variable_scope(name):
        with tf.device("/cpu:0"):
            kernel = tf.get_variable("kernel", [x.get_shape()[-1].value, units])
            bias = tf.get_variable("bias", [units], initializer=tf.zeros_initializer())
        return tf.nn.bias_add(tf.matmul(x, kernel), bias)


images = tf.placeholder(tf.float32, [None, 64], name="images")
labels = tf.placeholder(tf.int64, [None], name="labels")
with tf.device("/gpu:0"):
    logits = dense(tf.nn.relu(dense(images, 32, "hidden")), 10, "logits")
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
step = tf.train.get_or_create_global_step()
train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
with tf.control_dependencies([train]):
    done = tf.identity(step)
tf.summary.scalar("loss", loss)
summaries = tf.summary.merge_all()

with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
    session.run(tf.global_variables_initializer())
    batch = {images: np.ones([16, 64], np.float32), labels: np.zeros([16], np.int64)}
    session.run([done, summaries], batch)
print("one step done")
