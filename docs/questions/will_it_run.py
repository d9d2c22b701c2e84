"""Choose one of two datasets in a branch, and sum what comes of it in a function that XLA compiles."""

import tensorflow as tf

small, large = tf.data.Dataset.range(3), tf.data.Dataset.range(9)
with tf.device("/CPU:0"):
    total = tf.Variable(0.0, name="total")


@tf.function
def count(is_small):
    chosen = tf.cond(is_small, lambda: tf.identity(small._variant_tensor), lambda: tf.identity(large._variant_tensor))
    return tf.raw_ops.DatasetCardinality(input_dataset=chosen)


@tf.function(jit_compile=True)
def add(x):
    return total.assign_add(tf.reduce_sum(x))


add(tf.cast(tf.ones([4]) * float(count(tf.constant(True))), tf.float32))
