"""Strategies: MirroredStrategy on 2, 4 and 8 GPUs with each reduction, OneDeviceStrategy, CentralStorageStrategy."""

import contextlib

import tensorflow as tf

TASK = tf.config.list_logical_devices("CPU")[0].name.partition("/device:")[0]  # of a cluster, or ""


def local(kind):
    return [each.name for each in tf.config.list_logical_devices(kind) if each.name.startswith(f"{TASK}/device:")]


GPUS = local("GPU")
DEVICES = GPUS or local("CPU")


def train(name, strategy, reduce=True):
    with strategy.scope():
        weight = tf.Variable(tf.ones([2, 2]), aggregation=tf.VariableAggregation.MEAN)
        count = tf.Variable(
            0.0, synchronization=tf.VariableSynchronization.ON_READ, aggregation=tf.VariableAggregation.SUM
        )

    def replica(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.matmul(x, weight) ** 2)
        gradient = tape.gradient(loss, weight)
        gradient = tf.distribute.get_replica_context().all_reduce("sum", gradient)
        weight.assign_sub(0.1 * gradient)
        count.assign_add(loss)
        return loss

    def step(x):
        losses = strategy.run(replica, args=(x,))
        return strategy.reduce("sum", losses, axis=None) if reduce else strategy.experimental_local_results(losses)

    step.__name__ = name
    with contextlib.suppress(tf.errors.OpError):
        tf.function(step)(tf.ones([2, 2]))


for number in (2, 4, 8):
    if number <= len(DEVICES):
        train(f"mirrored_{number}", tf.distribute.MirroredStrategy(DEVICES[:number]))
REDUCTIONS = {
    "reduction_to_one_device": tf.distribute.ReductionToOneDevice(),
    "hierarchical_copy": tf.distribute.HierarchicalCopyAllReduce(),
    "nccl": tf.distribute.NcclAllReduce(),
}
for name, reduction in REDUCTIONS.items():
    if len(GPUS) > 1:
        train(name, tf.distribute.MirroredStrategy(GPUS, cross_device_ops=reduction))
train("one_device", tf.distribute.OneDeviceStrategy(DEVICES[-1]))
train("central_storage", tf.distribute.experimental.CentralStorageStrategy(compute_devices=DEVICES[:2]), reduce=False)
