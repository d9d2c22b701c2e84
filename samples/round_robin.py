"""Hand ops to the GPUs in turn, by a device function inside a tf.function."""

from itertools import cycle

import tensorflow as tf

turns = cycle(device.name for device in tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices("CPU"))


def in_turn(op):
    return next(turns) if op.type == "MatMul" else ""


@tf.function
def powers(x):
    results = []
    with tf.compat.v1.device(in_turn):
        for _ in range(4):
            x = tf.matmul(x, x)
            results.append(tf.reduce_sum(x))
    return results


print(len(powers(tf.eye(8))))
