"""Keras trains on pictures that are cropped at random, one after the other."""

import tensorflow as tf

SIDE, BATCH = 32, 128


def crop(picture, label):
    picture = tf.image.random_crop(tf.cast(picture, tf.float32) / 255.0, [SIDE, SIDE, 3])
    return tf.image.random_flip_left_right(picture), label


pictures = tf.zeros([2 * BATCH, SIDE + 8, SIDE + 8, 3], tf.uint8)
data = tf.data.Dataset.from_tensor_slices((pictures, tf.zeros([2 * BATCH], tf.int32)))
data = data.map(
    crop,
).batch(BATCH)
model = tf.keras.Sequential(
    [
        tf.keras.Input([SIDE, SIDE, 3]),
        tf.keras.layers.Conv2D(32, 3, activation="relu"),
        tf.keras.layers.GlobalAveragePooling2D(),
        tf.keras.layers.Dense(10),
    ]
)
model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=False)
model.fit(data, verbose=0)
print("trained")
