"""MultiWorkerMirroredStrategy as the only worker of its cluster: all-reduce and all-gather over the worker's GPUs."""

# machines: cpu:1; cpu:1,gpu:2; cpu:2,gpu:4

import contextlib
import json
import os

import tensorflow as tf


def train(name, strategy):
    with strategy.scope():
        weight = tf.Variable(tf.ones([2, 2]), aggregation=tf.VariableAggregation.MEAN)
        count = tf.Variable(
            0.0, synchronization=tf.VariableSynchronization.ON_READ, aggregation=tf.VariableAggregation.SUM
        )

    def replica(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.matmul(x, weight) ** 2)
        gradient = tf.distribute.get_replica_context().all_reduce("sum", tape.gradient(loss, weight))
        weight.assign_sub(0.1 * gradient)
        count.assign_add(loss)
        return tf.distribute.get_replica_context().all_gather(tf.reshape(loss, [1]), 0)

    def step(x):
        return strategy.gather(strategy.run(replica, args=(x,)), 0), strategy.reduce("sum", count, axis=None)

    step.__name__ = name
    with contextlib.suppress(tf.errors.OpError):
        tf.function(step)(tf.ones([2, 2]))


os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": ["here:2222"]}, "task": {"type": "worker", "index": 0}})
train("only_worker", tf.distribute.MultiWorkerMirroredStrategy())
