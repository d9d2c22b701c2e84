"""Keep an embedding on the CPU and call it outside of that scope: each step copies the whole table to the GPU."""

import tensorflow as tf

WORDS, WIDTH = 20_000, 64
with tf.device("/CPU:0"):
    embedding = tf.keras.layers.Embedding(WORDS, WIDTH)
    embedding.build([None, None])
dense = tf.keras.layers.Dense(8)
dense.build([None, WIDTH])


@tf.function
def predict(words):
    return dense(tf.reduce_mean(embedding(words), axis=1))


print(predict(tf.ones([32, 16], tf.int64)).shape)
