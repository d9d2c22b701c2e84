"""A function requests the GPU for an op on strings, with soft placement off."""

import tensorflow as tf

tf.config.set_soft_device_placement(False)


@tf.function
def shout(text):
    with tf.device("/GPU:0"):
        return tf.strings.upper(text)


shout(tf.constant(["a"]))
