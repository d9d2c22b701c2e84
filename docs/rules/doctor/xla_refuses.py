"""XLA compiles a loop whose variable doubles its size in each iteration."""

import tensorflow as tf


@tf.function(jit_compile=True)
def grow(x):
    for _ in tf.range(3):
        tf.autograph.experimental.set_loop_options(shape_invariants=[(x, tf.TensorShape([None]))])
        x = tf.concat([x, x], 0)
    return x


grow(tf.ones([3]))
