"""Mirror a variable on the GPUs of a strategy, of which one is not there."""

import tensorflow as tf

strategy = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"])
with strategy.scope():
    weights = tf.Variable(tf.ones([4, 4]), name="weights")


@tf.function
def step():
    return strategy.run(lambda: tf.matmul(weights, weights))


step()
