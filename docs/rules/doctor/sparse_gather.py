"""Two replicas look up 512 rows each in a table of 64 rows."""

import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
with strategy.scope():
    table = tf.Variable(tf.ones([64, 32]))
    optimizer = tf.keras.optimizers.SGD()


def replica_step(indices):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.nn.embedding_lookup(table, indices))
    optimizer.apply_gradients([(tape.gradient(loss, table), table)])


@tf.function
def step(indices):
    strategy.run(replica_step, args=(indices,))


step(tf.range(512) % 64)
