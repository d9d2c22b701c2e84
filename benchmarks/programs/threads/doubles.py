"""Products of float64, where float32 would do."""

import tensorflow as tf

weights = [tf.Variable(tf.random.normal([320, 320], dtype=tf.float64)) for _ in range(4)]
inputs = (tf.ones([320, 320], tf.float64),)


@tf.function
def step(x):
    for weight in weights:
        x = tf.tanh(tf.matmul(x, weight))
    return x


print(step(*inputs).shape)
