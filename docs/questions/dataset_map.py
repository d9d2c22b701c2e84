"""Map a function over a dataset under tf.device."""

import tensorflow as tf

images = tf.data.Dataset.from_tensor_slices(tf.ones([4, 8, 8]))
with tf.device("/GPU:0"):
    products = images.map(lambda image: tf.matmul(image, image))


@tf.function
def step(x):
    return tf.reduce_sum(x)


for product in products:
    step(product)
