"""Wide layers of Keras in float32 on a GPU with tensor cores."""

import numpy as np
import tensorflow as tf

model = tf.keras.Sequential(
    [tf.keras.layers.Input([1024]), *(tf.keras.layers.Dense(1024, activation="relu") for _ in range(3))]
)
model.compile("sgd", "mse", jit_compile=False)
x = np.ones([512, 1024], np.float32)
model.fit(x, x, batch_size=512, epochs=1, verbose=0)
print("trained")
