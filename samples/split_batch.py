"""Split a batch of 256 by hand into 8 parts of 32, one per GPU in turn, as Keras's multi_gpu_model once did."""

import tensorflow as tf

PARTS = 8
places = [gpu.name for gpu in tf.config.list_logical_devices("GPU")] or ["/CPU:0"]
with tf.device("/CPU:0"):
    weight = tf.Variable(tf.random.normal([20, 10]), name="weight")


@tf.function
def predict(batch):
    outputs = []
    for i, part in enumerate(tf.split(batch, PARTS)):
        with tf.device(places[i % len(places)]):
            outputs.append(tf.nn.softmax(tf.matmul(part, weight)))
    with tf.device("/CPU:0"):
        return tf.concat(outputs, 0)


print(predict(tf.ones([256, 20])).shape)
