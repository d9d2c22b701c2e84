"""Memory growth is set after the first variable, and the error is handled."""

import tensorflow as tf

weight = tf.Variable([1.0, 2.0])
gpus = tf.config.list_physical_devices("GPU")
try:
    tf.config.experimental.set_memory_growth(gpus[0], True)
except RuntimeError as error:
    print(error)
