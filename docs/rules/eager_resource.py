"""An op outside of functions assigns to a variable of the CPU, whatever the scope requests."""

import tensorflow as tf

with tf.device("/CPU:0"):
    weight = tf.Variable(tf.ones([4]))
with tf.device("/GPU:0"):
    weight.assign_add(tf.ones([4]))
