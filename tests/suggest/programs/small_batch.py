"""A Keras model with a batch so small that the GPU waits for launches most of the time."""

import numpy as np
import tensorflow as tf

BATCH = 8
model = tf.keras.Sequential(
    [
        tf.keras.layers.Input([28, 28, 1]),
        tf.keras.layers.Conv2D(16, 3, activation="relu"),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(64, activation="relu"),
        tf.keras.layers.Dense(10),
    ]
)
model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=False)
x, y = np.ones([512, 28, 28, 1], np.float32), np.zeros([512], np.int32)
model.fit(x, y, batch_size=BATCH, epochs=1, steps_per_epoch=2, verbose=0)
print("trained")
