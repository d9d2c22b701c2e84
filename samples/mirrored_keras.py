"""Train a small Keras convolution model with MirroredStrategy, one copy of the model per GPU."""

import keras
import numpy as np
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
batch = 16 * strategy.num_replicas_in_sync

with strategy.scope():
    model = keras.Sequential(
        [
            keras.Input([28, 28, 1]),
            keras.layers.Conv2D(8, 3, activation="relu"),
            keras.layers.MaxPooling2D(),
            keras.layers.Flatten(),
            keras.layers.Dense(10, activation="softmax"),
        ]
    )
    model.compile("sgd", "sparse_categorical_crossentropy")

images = np.zeros([batch, 28, 28, 1], "float32")
labels = np.zeros([batch], "int64")
model.fit(images, labels, batch_size=batch, epochs=1, verbose=0)
print("replicas:", strategy.num_replicas_in_sync)
