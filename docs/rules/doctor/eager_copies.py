"""A loop outside of functions makes a tensor on the CPU in each iteration, and uses it on the GPU."""

import tensorflow as tf

total = tf.zeros([32, 32])
for _ in range(10):
    with tf.device("/CPU:0"):
        batch = tf.random.uniform([32, 32])
    total = total + batch
