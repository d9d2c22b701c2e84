"""Keras 3: every usual layer, each trained a step, with the optimizers and with mixed precision."""

import numpy as np
import tensorflow as tf
from keras import layers

tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})  # it comes after the placement

SEQUENCE = np.ones((2, 5, 4), "float32")
IMAGE = np.ones((2, 8, 8, 3), "float32")
VECTOR = np.ones((2, 4), "float32")
TOKENS = np.ones((2, 5), "int32")


def train(x, *stack, optimizer="sgd", **options):
    model = tf.keras.Sequential([*stack, layers.Flatten(), layers.Dense(1, dtype="float32")])
    model.compile(optimizer, "mse", jit_compile=False, **options)
    model.fit(x, np.ones((len(x), 1), "float32"), epochs=1, batch_size=2, verbose=0)
    return model


dense = train(VECTOR, layers.Dense(3, activation="relu"), metrics=["mae"])
dense.evaluate(VECTOR, np.ones((2, 1)), verbose=0)
dense.predict(VECTOR, verbose=0)
train(
    IMAGE, layers.Conv2D(2, 3), layers.BatchNormalization(), layers.ReLU(), layers.MaxPooling2D(), layers.Dropout(0.5)
)
train(IMAGE, layers.SeparableConv2D(2, 3), layers.DepthwiseConv2D(3))
train(IMAGE, layers.Conv2DTranspose(2, 3), layers.UpSampling2D(), layers.ZeroPadding2D())
train(SEQUENCE, layers.LSTM(3))
train(SEQUENCE, layers.GRU(3, return_sequences=True))
train(SEQUENCE, layers.Bidirectional(layers.LSTM(3)))
train(SEQUENCE, layers.SimpleRNN(3))
train(TOKENS, layers.Embedding(10, 4), layers.GlobalMaxPooling1D())
train(VECTOR, layers.LayerNormalization(), layers.Dropout(0.5), layers.GaussianNoise(0.1))
DECAYING = tf.keras.optimizers.schedules.ExponentialDecay(0.1, 2, 0.5)
for optimizer in (
    tf.keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True), tf.keras.optimizers.Adam(clipnorm=1.0),
    tf.keras.optimizers.AdamW(clipvalue=0.5), tf.keras.optimizers.RMSprop(global_clipnorm=1.0),
    tf.keras.optimizers.Adagrad(), tf.keras.optimizers.Adam(DECAYING),
):  # fmt: skip
    train(VECTOR, layers.Dense(3), optimizer=optimizer)

inputs = tf.keras.Input((5, 4))
attended = layers.MultiHeadAttention(2, 3)(inputs, inputs)
attention = tf.keras.Model(inputs, layers.Dense(1)(layers.Add()([inputs, attended])))
attention.compile("adam", "mse", jit_compile=False)
attention.fit(SEQUENCE, np.ones((2, 5, 1), "float32"), verbose=0)


class Custom(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.layer = layers.Dense(1)

    def call(self, x):
        return self.layer(x)

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((self(x, training=True) - y) ** 2)
        variables = self.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return {"loss": loss}


custom = Custom()
custom.compile("adam", jit_compile=False)
custom.fit(VECTOR, np.ones((2, 1), "float32"), verbose=0)

tf.keras.mixed_precision.set_global_policy("mixed_float16")
train(IMAGE, layers.Conv2D(2, 3), layers.BatchNormalization(), layers.Dense(2), optimizer="adam")
