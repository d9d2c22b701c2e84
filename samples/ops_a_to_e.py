"""Run five ops on two GPUs: A, B and C start at once, D and E wait for C; A is large enough to be split."""

import tensorflow as tf

with tf.device("/GPU:0"):
    large, small = tf.Variable(tf.ones([512, 512])), tf.Variable(tf.ones([512]))
with tf.device("/GPU:1"):
    other = tf.Variable(tf.ones([512]))


@tf.function
def five_ops():
    with tf.device("/GPU:0"):
        a = tf.matmul(large, large, name="A")
        b = tf.tanh(small, name="B")
    with tf.device("/GPU:1"):
        c = tf.exp(other, name="C")
        d = tf.sin(c, name="D")
        e = tf.cos(c, name="E")
    return a, b, d, e


five_ops()
print("one step done")
