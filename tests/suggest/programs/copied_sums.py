"""Gradients of two replicas that are packed, copied to one GPU, summed up there, and copied back."""

import numpy as np
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy(cross_device_ops=tf.distribute.HierarchicalCopyAllReduce(num_packs=1))
with strategy.scope():
    model = tf.keras.Sequential(
        [
            tf.keras.layers.Input([1024]),
            *[tf.keras.layers.Dense(2048, activation="relu") for _ in range(4)],
            tf.keras.layers.Dense(10),
        ]
    )
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("sgd", loss, jit_compile=False)
x, y = np.ones([2048, 1024], np.float32), np.zeros([2048], np.int32)
model.fit(x, y, batch_size=1024, epochs=1, verbose=0)
print("trained")
