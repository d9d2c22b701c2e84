"""A product is to be colocated with a node that is not in its graph."""

import tensorflow as tf
from tensorflow.compat.v1 import AttrValue


@tf.function
def multiply(x):
    product = tf.matmul(x, x)
    product.op._set_attr("_class", AttrValue(list=AttrValue.ListValue(s=[b"loc:@weights"])))
    return product


multiply(tf.ones([2, 2]))
