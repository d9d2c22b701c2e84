"""Two towers of Keras layers that do not need each other, trained on GPU:0, since nothing asks for another GPU."""

import numpy as np
import tensorflow as tf

WIDTH, BATCH = 2048, 2048
layers = tf.keras.layers
query, answer = tf.keras.Input([256]), tf.keras.Input([256])
a = layers.Dense(WIDTH, activation="relu")(query)
a = layers.Dense(WIDTH, activation="relu")(a)
b = layers.Dense(WIDTH, activation="relu")(answer)
b = layers.Dense(WIDTH, activation="relu")(b)
model = tf.keras.Model([query, answer], layers.Dot(1)([a, b]))
model.compile("adam", "mse", jit_compile=False)
x = np.random.default_rng(0).random([BATCH, 256], np.float32)
history = model.fit([x, x], x[:, :1], batch_size=BATCH, epochs=2, verbose=0)
print(history.history["loss"])
