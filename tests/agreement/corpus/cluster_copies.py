"""Copies between tasks: sent once to a task and on from there, references, loops, order, a server on its own."""

# machines: cpu:1,gpu:2; cpu:2,gpu:1

import contextlib

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
v1.disable_control_flow_v2()
SOFT = tf.config.get_soft_device_placement()
CLUSTER = tf.train.ClusterSpec({"worker": ["first:2222", "second:2222"], "ps": ["store:2222"]})
server = tf.distribute.Server(CLUSTER, job_name="worker", task_index=1)
FIRST, HOST, FAR = "/job:worker/task:1/cpu:0", "/job:worker/task:0/cpu:0", "/job:ps/task:0/cpu:0"
ONE, TWO, LAST = "/job:worker/task:0/gpu:0", "/job:worker/task:0/gpu:1", "/job:ps/task:0/gpu:0"


def session(build, target=server.target):
    config = v1.ConfigProto(allow_soft_placement=SOFT)
    with tf.Graph().as_default(), tf.name_scope(build.__name__), v1.Session(target, config=config) as running:
        for fetches, feeds in build():
            with contextlib.suppress(tf.errors.OpError):
                running.run(v1.global_variables_initializer())
                running.run(fetches, feeds)


def fed(device):
    with v1.device(device):
        x = v1.placeholder(tf.float32, [2])
    return x, {x: np.ones(2, np.float32)}


def sent_on():
    x, feeds = fed(FAR)
    with v1.device(TWO):
        a, shape = x * 2.0, tf.shape(x * 3.0)
    with v1.device(ONE):
        b = tf.reshape(x + a, shape)
    with v1.device(HOST):
        c, text = x + b, tf.strings.as_string(x)
    with v1.device(LAST):
        d = tf.reshape(x - a, shape + 1 - 1)
    yield [c, text, d, shape], feeds
    yield [a], feeds
    yield [b, tf.identity(c)], {**feeds, a: np.ones(2, np.float32)}


def ordered():
    x, feeds = fed(FIRST)
    with v1.device(FAR):
        y = x + 1.0
    made = []
    for device in (ONE, TWO, HOST, LAST, TWO):
        with v1.device(device), tf.control_dependencies([y, *made[-1:]]):
            made.append(tf.sin(x))
    yield made, feeds


def references():
    x, feeds = fed(ONE)
    with v1.device(FAR):
        v = v1.get_variable("v", [2], use_resource=False)
    with v1.device(LAST):
        w = v1.get_variable("w", [2], use_resource=False)
    with v1.device(TWO):
        y = x * v
        z = (y + w) * v
    with v1.device(HOST):
        added = v1.assign_add(v, z)
        both = v * w * x
    with v1.device(ONE), tf.control_dependencies([added, both]):
        yield [v * x, w + z, v1.assign(w, y)], feeds


def loops():
    x, feeds = fed(HOST)

    def body(i, total, other):
        with v1.device(ONE):
            half = total * 0.5
        with v1.device(FAR):
            third = v1.cond(half[0] > 0.0, lambda: half / 3.0, lambda: total + other)
        with v1.device(TWO):
            inner = v1.while_loop(lambda j, a: j < i, lambda j, a: (j + 1, tf.sin(a) + half), [tf.constant(0), third])
            return i + 1, inner[1] + total, half

    last = v1.while_loop(lambda i, total, other: i < 3, body, [tf.constant(0), x, x])
    yield list(last), feeds
    yield v1.gradients(last[1], x), feeds


def constants():
    x, feeds = fed(FIRST)
    small, large = tf.constant([1.0, 2.0]), tf.range(40.0)
    made = []
    for device in (FIRST, FAR, ONE, LAST):
        with v1.device(device):
            made += [x + small, tf.reduce_sum(large) * small]
    yield made, feeds


for build in (sent_on, ordered, references, loops, constants):
    session(build)


def on_its_own():
    x, feeds = fed("/cpu:0")
    with v1.device("/gpu:0"):
        y = tf.reshape(x * 2.0, tf.shape(x))
    yield [y, tf.strings.as_string(y)], feeds


session(on_its_own, v1.train.Server.create_local_server().target)


tf.config.experimental_connect_to_cluster(CLUSTER)


@tf.function
def chain(x):
    with tf.device(FAR):
        y = x + 1.0
    with tf.device(TWO):
        z = y * 2.0
    with tf.device(ONE), tf.control_dependencies([z]):
        a = tf.reshape(y + x, tf.shape(y))
    with tf.device(LAST):
        return a + z, tf.strings.as_string(y)


for device in (FIRST, FAR, ONE, LAST):
    with tf.device(device), contextlib.suppress(tf.errors.OpError):
        chain(tf.ones([2]))
