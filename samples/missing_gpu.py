"""Request GPU:2, which most machines do not have: an error with soft placement off, a silent move with it on."""

import tensorflow as tf


@tf.function
def multiply(a, b):
    with tf.device("/device:GPU:2"):
        return tf.matmul(a, b)


print(multiply(tf.ones([2, 3]), tf.ones([3, 2])))
