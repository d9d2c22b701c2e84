"""Products that do not need each other, in a program that allows itself one thread."""

import tensorflow as tf

tf.config.threading.set_inter_op_parallelism_threads(1)
tf.config.threading.set_intra_op_parallelism_threads(1)
weights = [tf.Variable(tf.random.normal([256, 256])) for _ in range(8)]
inputs = (tf.ones([256, 256]),)


@tf.function
def step(x):
    return tf.add_n([tf.reduce_sum(tf.matmul(x, weight)) for weight in weights])


print(step(*inputs).shape)
