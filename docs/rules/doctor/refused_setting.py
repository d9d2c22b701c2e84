"""Memory growth is set after the first variable."""

import tensorflow as tf

weight = tf.Variable([1.0, 2.0])
for gpu in tf.config.list_physical_devices("GPU"):
    tf.config.experimental.set_memory_growth(gpu, True)
