"""Run one training step of an LSTM; Keras picks another implementation where there is a GPU."""

import keras
import tensorflow as tf

model = keras.Sequential([keras.Input([10, 8]), keras.layers.LSTM(16), keras.layers.Dense(1)])
optimizer = keras.optimizers.SGD(0.1)


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


train_step(tf.ones([4, 10, 8]), tf.ones([4, 1]))
print("one step done")
