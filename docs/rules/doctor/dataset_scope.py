"""The scope is around Dataset.map, and not in the function."""

import tensorflow as tf

images = tf.data.Dataset.from_tensor_slices(tf.ones([4, 8, 8]))
with tf.device("/GPU:0"):
    products = images.map(lambda image: tf.matmul(image, image))
