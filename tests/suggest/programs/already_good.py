"""One GPU, large products, nothing in the way: there is nothing to suggest."""

import tensorflow as tf

weights = [tf.Variable(tf.random.normal([2048, 2048], stddev=0.02)) for _ in range(2)]


@tf.function
def step(x):
    for weight in weights:
        x = tf.nn.relu(tf.matmul(x, weight))
    return x


print(step(tf.ones([1024, 2048])).shape)
