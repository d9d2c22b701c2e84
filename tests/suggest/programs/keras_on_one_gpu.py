"""A Keras model with much work an example on GPU:0, while nothing asks for the other GPUs."""

import numpy as np
import tensorflow as tf

ROWS = 4096
x = np.ones([ROWS, 64], np.float32)
wide = [tf.keras.layers.Dense(1024, activation="relu") for _ in range(2)]
model = tf.keras.Sequential([tf.keras.layers.Input([64]), *wide, tf.keras.layers.Dense(64)])
optimizer = tf.keras.optimizers.SGD(0.01)
model.compile(optimizer, "mse")
model.fit(x, x, batch_size=ROWS, epochs=1, verbose=0)
print("trained")
