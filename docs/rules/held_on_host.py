"""A list of strings is in host memory, so its length is read there."""

import tensorflow as tf


@tf.function
def words():
    array = tf.raw_ops.EmptyTensorList(element_shape=-1, max_num_elements=4, element_dtype=tf.string)
    array = tf.raw_ops.TensorListPushBack(input_handle=array, tensor="a")
    return tf.raw_ops.TensorListLength(input_handle=array)


print(words().shape)
