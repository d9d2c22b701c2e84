"""Stream six layers from host memory to a GPU, all at once or each when needed: control edges spread the copies."""

import tensorflow as tf

LAYERS = 6
with tf.device("/CPU:0"):
    weights = [tf.Variable(tf.ones([1024, 1024]), name=f"layer{i}") for i in range(LAYERS)]


def forward(x, weight, before):
    with tf.control_dependencies(before), tf.device("/CPU:0"):
        on_host = tf.identity(weight)
    with tf.device("/GPU:0"):
        return tf.matmul(x, on_host)


@tf.function
def all_at_once(x):
    for weight in weights:
        x = forward(x, weight, [])
    return x


@tf.function
def when_needed(x):
    for weight in weights:
        x = forward(x, weight, [x])
    return x


x = tf.ones([4096, 1024])
all_at_once(x)
when_needed(x)
print("one step done")
