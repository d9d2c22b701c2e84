"""Square six matrices that do not depend on each other, and sum up."""

import tensorflow as tf


@tf.function
def step(matrices):
    return tf.add_n([tf.matmul(x, x, name=f"product_{i}") for i, x in enumerate(matrices)])


step([tf.ones([512, 512]) for _ in range(6)])
