"""Pictures that are flipped at random: a function with state, which tf.data calls for one picture after the other."""

import tensorflow as tf

SIDE, BATCH = 64, 64
weight = tf.Variable(tf.random.normal([SIDE * SIDE * 3, 256], stddev=0.01))


def augment(picture):
    picture = tf.image.random_flip_left_right(tf.cast(picture, tf.float32) / 255.0)
    picture = tf.image.random_brightness(picture, 0.2)
    return tf.reshape(tf.image.random_contrast(picture, 0.8, 1.2), [-1])


@tf.function
def score(batch):
    return tf.reduce_mean(tf.nn.relu(tf.matmul(batch, weight)))


pictures = tf.data.Dataset.from_tensor_slices(tf.zeros([2 * BATCH, SIDE, SIDE, 3], tf.uint8))
for batch in pictures.map(augment).batch(BATCH):
    print(score(batch).shape)
