"""Many small products at once, each shared among the threads as all ops are."""

import tensorflow as tf

weights = [tf.Variable(tf.random.normal([96, 96])) for _ in range(24)]
inputs = (tf.ones([96, 96]),)


@tf.function
def step(x):
    return tf.add_n([tf.reduce_sum(tf.matmul(x, weight)) for weight in weights])


print(step(*inputs).shape)
