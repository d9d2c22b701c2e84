"""Keep the parts of a table on two parameter servers, and let a worker train with them."""

import tensorflow as tf

cluster = tf.train.ClusterSpec({"chief": ["chief:2222"], "ps": ["ps0:2222", "ps1:2222"], "worker": ["worker0:2222"]})
resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(cluster, task_type="chief", task_id=0, rpc_layer="grpc")
partitioner = tf.distribute.experimental.partitioners.MinSizePartitioner(min_shard_bytes=1024, max_shards=2)
strategy = tf.distribute.ParameterServerStrategy(resolver, variable_partitioner=partitioner)
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)

with strategy.scope():
    table = tf.Variable(tf.zeros([1000, 8]), name="table", aggregation=tf.VariableAggregation.SUM)
    weight = tf.Variable(tf.ones([8]), name="weight", aggregation=tf.VariableAggregation.SUM)


@tf.function
def step(words, labels):
    def replica():
        with tf.GradientTape() as tape:
            rows = tf.nn.embedding_lookup(table, words)
            loss = tf.reduce_mean(tf.square(tf.linalg.matvec(rows, weight) - labels))
        weight.assign_sub(0.1 * tape.gradient(loss, weight))
        return loss

    return strategy.reduce("mean", strategy.run(replica), axis=None)


loss = coordinator.schedule(step, args=(tf.constant([3, 14, 159]), tf.ones([3])))
print("loss:", loss.fetch())
