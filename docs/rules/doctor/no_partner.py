"""A reduction of two members has one."""

import tensorflow as tf


@tf.function
def reduce(x):
    with tf.device("/GPU:0"):
        return tf.raw_ops.CollectiveReduceV2(
            input=x, group_size=2, group_key=1, instance_key=1, ordering_token=[], merge_op="Add", final_op="Id"
        )


reduce(tf.ones([2]))
