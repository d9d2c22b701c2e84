"""Weights on the CPU, as a device function of TensorFlow 1 did, read by a GPU in every step."""

import tensorflow as tf

with tf.device("/cpu:0"):
    first = tf.Variable(tf.random.normal([1024, 2048], stddev=0.02), name="first")
    second = tf.Variable(tf.random.normal([2048, 1024], stddev=0.02), name="second")


@tf.function
def predict(x):
    return tf.matmul(tf.nn.relu(tf.matmul(x, first)), second)


print(predict(tf.ones([64, 1024])).shape)
