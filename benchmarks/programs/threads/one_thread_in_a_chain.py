"""Products that need each other, in a program that gives an op one thread."""

import tensorflow as tf

tf.config.threading.set_intra_op_parallelism_threads(1)
weights = [tf.Variable(tf.random.normal([320, 320], stddev=0.03)) for _ in range(6)]
inputs = (tf.ones([320, 320]),)


@tf.function
def step(x):
    for weight in weights:
        x = tf.matmul(x, weight)
    return x


print(step(*inputs).shape)
