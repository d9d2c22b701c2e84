"""An op outside of functions requests a GPU, where it has no kernel, with soft placement off."""

import tensorflow as tf

tf.config.set_soft_device_placement(False)
text = tf.constant(["a"])
with tf.device("/GPU:0"):
    tf.strings.upper(text)
