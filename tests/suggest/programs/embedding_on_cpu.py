"""An embedding under a CPU scope: the table fits on the GPU."""

import tensorflow as tf

with tf.device("/CPU:0"):
    table = tf.Variable(tf.random.normal([20000, 256], stddev=0.05), name="table")
dense = tf.Variable(tf.random.normal([256, 256], stddev=0.05), name="dense")


@tf.function
def embed(tokens):
    with tf.device("/CPU:0"):
        vectors = tf.nn.embedding_lookup(table, tokens)
    return tf.reduce_mean(tf.nn.relu(tf.tensordot(vectors, dense, 1)), axis=1)


print(embed(tf.zeros([64, 128], tf.int64)).shape)
