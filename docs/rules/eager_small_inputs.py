"""The environment tells TensorFlow to keep small integers on the CPU."""

import os

os.environ["TF_EAGER_ENABLE_SMALL_TENSOR_CPU_PINNING"] = "1"

import tensorflow as tf

with tf.device("/CPU:0"):
    two = tf.constant(2, tf.int64)
tf.multiply(two, two)
