"""Build a functional Keras model under tf.device, and call it outside."""

import keras
import tensorflow as tf

inputs = keras.Input([8])
with tf.device("/GPU:1"):
    outputs = keras.layers.Dense(4)(inputs)
model = keras.Model(inputs, outputs)


@tf.function
def predict(x):
    return model(x)


predict(tf.ones([2, 8]))
