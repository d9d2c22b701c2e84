"""Memory growth is set for one GPU of two."""

import tensorflow as tf

gpus = tf.config.list_physical_devices("GPU")
tf.config.experimental.set_memory_growth(gpus[0], True)
tf.config.list_logical_devices()
