"""Clusters: sessions of a master, functions on and across tasks, device filters, and sessions that prune first."""

import contextlib

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
SOFT = tf.config.get_soft_device_placement()
CLUSTER = tf.train.ClusterSpec({"worker": ["first:2222", "second:2222"], "ps": ["store:2222"], "zoo": {3: "odd:1"}})
server = tf.distribute.Server(CLUSTER, job_name="worker", task_index=1)


def session(build, target=server.target, **options):
    """Run what each `yield` gives: a list of fetches, or a pair of such a list and feeds."""
    config = v1.ConfigProto(allow_soft_placement=SOFT, **options)
    with tf.Graph().as_default(), tf.name_scope(build.__name__), v1.Session(target, config=config) as running:
        for step in build():
            fetches, *feeds = step if isinstance(step, tuple) else (step,)
            with contextlib.suppress(tf.errors.OpError):
                running.run(v1.global_variables_initializer())
                running.run(fetches, *feeds)


def nothing_requested():
    a = tf.ones([2, 2])
    yield [tf.matmul(a, a), tf.strings.as_string(a), tf.shape(a), tf.random.uniform([2])]


def partly_requested():
    with tf.device("/job:worker"):
        a = tf.ones([2])
    with tf.device("/job:ps/CPU:0"):
        b = a + 1.0
    with tf.device("/GPU:1"):
        c = b * 2.0
    with tf.device("/task:1"):
        d = tf.strings.as_string(c)
    with tf.device("/job:zoo/task:3"), tf.device("/GPU:0"):
        e = tf.sin(c)
    yield [d, e, tf.shape(e), tf.identity(e)]


def missing_task():
    with tf.device("/job:worker/task:7"):
        yield [tf.ones([2]) + 1.0]


def variables(use_resource):
    setter = v1.train.replica_device_setter(cluster=CLUSTER, worker_device="/job:worker/task:0")
    with v1.device(setter):
        weight = v1.get_variable("weight", [2, 2], use_resource=use_resource)
        count = v1.get_variable("count", [], tf.int64, v1.zeros_initializer(), use_resource=use_resource)
        loss = tf.reduce_sum(tf.matmul(weight, weight))
        train = v1.train.AdamOptimizer(0.1).minimize(loss)
    yield [train, count]
    with tf.device("/job:worker/task:0/GPU:0"):
        yield [weight + 1.0, v1.assign_add(count, 1)]
    yield [v1.train.MomentumOptimizer(0.1, 0.9).minimize(loss, colocate_gradients_with_ops=True), loss]


def resource_variables():
    yield from variables(True)


def reference_variables():
    yield from variables(False)


def partitioned_variables():
    setter = v1.train.replica_device_setter(ps_tasks=1, worker_device="/job:worker/task:1")
    with v1.device(setter), v1.variable_scope("parts", partitioner=v1.fixed_size_partitioner(3)):
        table = v1.get_variable("table", [9, 2])
        yield [tf.nn.embedding_lookup(table, [1, 5]), *v1.gradients(tf.convert_to_tensor(table), list(table))]


def control_flow():
    with tf.device("/job:ps"):
        x = v1.placeholder_with_default(tf.ones([2]), [2])
    with tf.device("/job:worker/task:1"):
        y = tf.cond(x[0] > 0.0, lambda: x + 1.0, lambda: tf.sin(x))
    yield list(tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, tf.sin(a)), [0, y]))


def pruned():
    x = v1.placeholder(tf.float32, [2])
    with tf.control_dependencies([x]):
        late = tf.constant([1.0, 2.0])
    v = v1.get_variable("v", [2], use_resource=True)
    w = v1.get_variable("w", [2], use_resource=False)
    with tf.device("/GPU:0"):
        y = x * 2.0 + late
        refused = tf.strings.upper("a")
    z = y + v + w
    chosen = tf.cond(z[0] > 0.0, lambda: z, lambda: z * 2.0)
    feeds = {x: np.ones(2, np.float32)}
    yield [y], feeds
    yield [z, tf.shape(z)], feeds
    yield [tf.strings.as_string(chosen)], feeds
    yield [chosen], {z: np.ones(2, np.float32)}
    yield [v.assign(y), v1.global_variables_initializer()], feeds
    yield [refused]
    yield [w * 3.0, chosen], feeds


for build in (
    nothing_requested,
    partly_requested,
    missing_task,
    resource_variables,
    reference_variables,
    partitioned_variables,
    control_flow,
):
    session(build)
session(pruned, "", graph_options=v1.GraphOptions(place_pruned_graph=True))


def on_one_worker():
    yield from nothing_requested()


session(on_one_worker, device_filters=["/job:worker/task:1", "/job:ps"])

filters = tf.config.experimental.ClusterDeviceFilters()
filters.set_device_filters("worker", 0, ["/job:ps"])
tf.config.experimental_connect_to_cluster(CLUSTER, cluster_device_filters=filters)
TASKS = ("/job:worker/task:0", "/job:worker/task:1", "/job:ps/task:0")
GPU = "GPU:0" if tf.config.list_logical_devices("GPU") else "CPU:0"
with tf.device("/job:ps/task:0/CPU:0"):
    weight, steps = tf.Variable([1.0, 2.0]), tf.Variable(0)
with tf.device(f"/job:worker/task:1/{GPU}"):
    near = tf.Variable([1.0, 2.0])


def call(function, *arguments):
    with contextlib.suppress(tf.errors.OpError):
        return function(*arguments)


@tf.function
def across(x, n):
    with tf.device("/job:worker/task:1"):
        y = tf.sin(x)
    with tf.device("/job:ps/task:0/CPU:0"):
        z = tf.strings.as_string(y)
    with tf.device("/job:worker/task:0"):
        return y * 2.0, z, tf.range(n), tf.shape(y)


@tf.function
def captured(x, n):
    steps.assign_add(n)
    return weight + x, tf.random.uniform([2]), tf.shape(x), n + 1


@tf.function
def near_and_far(x):
    near.assign(x)
    return tf.identity(near) + weight


@tf.function
def nested(x):
    with tf.device(f"/{GPU}"):
        y = captured(x, 2)[0]
    return tf.cond(y[0] > 0.0, lambda: y + 1.0, lambda: weight.read_value())


x = tf.ones([2])
for task in ("/job:localhost", *TASKS):
    for device in ("CPU:0", GPU):
        with tf.device(f"{task}/{device}"):
            call(across, x, tf.constant(3))
            made = call(captured, x, tf.constant(3))
            call(near_and_far, x)
            call(nested, tf.ones([2]))
        if made is not None:
            with tf.device("/job:worker/task:1"):
                call(captured, made[0], made[3])
            call(across, made[0], made[3])
