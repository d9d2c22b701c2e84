"""A function asks for a string op on the GPU, with soft placement off."""

import tensorflow as tf

tf.config.set_soft_device_placement(False)


@tf.function
def shout(text):
    with tf.device("/GPU:0"):
        return tf.strings.upper(text)


shout(tf.constant(["a"]))
