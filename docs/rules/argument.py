"""`numbers` is int32, `x` is float32; both are made on the GPU's side of the call."""

import tensorflow as tf


@tf.function
def scale(x, numbers):
    return x * tf.cast(numbers, tf.float32)


print(scale(tf.ones([4]), tf.range(4)).shape)
