"""Mix ops that have kernels for a GPU (Cast, despite what old tutorials say) with ops that do not (strings, Unique)."""

import tensorflow as tf


@tf.function
def report(x):
    with tf.device("/GPU:0"):
        whole = tf.cast(x, tf.int64)
        values, _ = tf.unique(tf.reshape(whole, [-1]))
        text = tf.strings.as_string(x)
        return tf.cast(tf.size(values), tf.float32) * x, tf.strings.join([text, "!"])


print(report(tf.constant([[1.0, 2.0], [2.0, 3.0]]))[0].shape)
