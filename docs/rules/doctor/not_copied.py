"""A branch that runs on the GPU forwards a dataset."""

import tensorflow as tf

few, many = tf.data.Dataset.range(3)._variant_tensor, tf.data.Dataset.range(9)._variant_tensor


@tf.function
def count(is_small):
    chosen = tf.cond(is_small, lambda: tf.identity(few), lambda: tf.identity(many))
    return tf.raw_ops.DatasetCardinality(input_dataset=chosen)


count(tf.constant(True))
