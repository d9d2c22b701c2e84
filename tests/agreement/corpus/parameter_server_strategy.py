"""ParameterServerStrategy with a coordinator: variables on the parameter servers, functions on the workers."""

import contextlib

import tensorflow as tf

CLUSTER = tf.train.ClusterSpec({
    "chief": ["chief:2222"], "ps": ["first:2222", "second:2222"], "worker": ["third:2222", "fourth:2222"],
})  # fmt: skip
SUM = tf.VariableAggregation.SUM
resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(CLUSTER, task_type="chief", task_id=0, rpc_layer="grpc")
partitioner = tf.distribute.experimental.partitioners.MinSizePartitioner(min_shard_bytes=64, max_shards=2)
strategy = tf.distribute.ParameterServerStrategy(resolver, variable_partitioner=partitioner)
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)

with strategy.scope():
    table = tf.Variable(tf.random.uniform([16, 4]), aggregation=SUM)
    weight = tf.Variable(tf.ones([4, 1]), aggregation=SUM)
    momentum = tf.Variable(tf.zeros([4, 1]), aggregation=SUM)
    count = tf.Variable(0, dtype=tf.int64, aggregation=SUM)


def batches():
    return tf.data.Dataset.from_tensor_slices(([[1, 2], [3, 15]], [[1.0], [2.0]])).repeat().batch(2)


@tf.function
def dataset_on_worker():
    return strategy.distribute_datasets_from_function(lambda context: batches())


@tf.function
def train(iterator):
    def replica(ids, labels):
        with tf.GradientTape() as tape:
            rows = tf.reduce_mean(tf.nn.embedding_lookup(table, ids), axis=1)
            loss = tf.reduce_mean(tf.square(tf.matmul(rows, weight) - labels))
        gradient = tape.gradient(loss, weight)
        momentum.assign(momentum * 0.9 + gradient)
        weight.assign_sub(0.1 * momentum)
        count.assign_add(1)
        return loss

    losses = strategy.run(replica, args=next(iterator))
    return strategy.reduce("sum", losses, axis=None)


@tf.function
def evaluate(ids):
    with tf.device("/job:ps/task:1"):
        rows = tf.nn.embedding_lookup(table, ids)
    return tf.strings.as_string(tf.matmul(rows, weight)), tf.shape(rows)


@tf.function
def on_the_chief():
    return tf.reduce_sum(weight) + tf.reduce_sum(tf.convert_to_tensor(table)), count + 1


iterator = iter(coordinator.create_per_worker_dataset(dataset_on_worker))
for _ in range(6):
    coordinator.schedule(train, args=(iterator,))
with contextlib.suppress(tf.errors.OpError):
    coordinator.join()
coordinator.schedule(evaluate, args=(tf.constant([1, 2]),))
with contextlib.suppress(tf.errors.OpError):
    coordinator.join()
    on_the_chief()
