"""Run five ops on two GPUs: A, B and C start at once, D and E wait for C; A is large enough to be split."""

import tensorflow as tf

gpus = [gpu.name for gpu in tf.config.list_logical_devices("GPU")]
first, second = [*gpus, "/CPU:0", "/CPU:0"][:2]  # what is there of two GPUs

with tf.device(first):
    large, small = tf.Variable(tf.ones([512, 512])), tf.Variable(tf.ones([512]))
with tf.device(second):
    other = tf.Variable(tf.ones([512]))


@tf.function
def five_ops():
    with tf.device(first):
        a = tf.matmul(large, large, name="A")
        b = tf.tanh(small, name="B")
    with tf.device(second):
        c = tf.exp(other, name="C")
        d = tf.sin(c, name="D")
        e = tf.cos(c, name="E")
    return a, b, d, e


five_ops()
print("one step done")
