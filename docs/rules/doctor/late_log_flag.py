"""The placement log is switched on after the first variable."""

import tensorflow as tf

weight = tf.Variable([1.0, 2.0])
tf.debugging.set_log_device_placement(True)
