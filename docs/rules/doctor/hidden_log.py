"""The placement log is switched on, and the log level hides it."""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "1"

import tensorflow as tf

tf.debugging.set_log_device_placement(True)
tf.zeros([2])
