"""An op on strings requests a GPU, where it has no kernel."""

import tensorflow as tf


@tf.function
def spell(x):
    with tf.device("/GPU:0"):
        return tf.strings.as_string(x)


spell(tf.ones([2]))
