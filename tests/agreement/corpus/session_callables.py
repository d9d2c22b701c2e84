"""Callables and partial runs of sessions, with and without place_pruned_graph, and on a cluster."""

# machines: cpu:1; cpu:1,gpu:2

import contextlib

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import config_pb2

v1 = tf.compat.v1
SOFT = tf.config.get_soft_device_placement()
CLUSTER = tf.train.ClusterSpec({"worker": ["first:2222", "second:2222"]})
server = tf.distribute.Server(CLUSTER, job_name="worker", task_index=0)
ONE = np.ones(2, np.float32)


def model(scope):
    with v1.variable_scope(scope):
        with v1.device("/gpu:0"):
            x = v1.placeholder(tf.float32, [2], name="x")
            y = v1.placeholder(tf.float32, [2], name="y")
            v = v1.get_variable("v", [2], use_resource=False)
            w = v1.get_variable("w", [2], use_resource=True)
            a = tf.identity(x * 2.0 + v, name="a")
        b = tf.strings.as_string(a, name="b")
        with tf.control_dependencies([y]):
            c = tf.identity(a - 1.0, name="c")
        with v1.device("/gpu:1"):
            d = tf.add(c * w, y, name="d")
            e = tf.cond(d[0] > 0.0, lambda: d, lambda: tf.sin(y))
    return x, y, v, w, a, b, c, d, e


def named(scope, feeds, fetches, **options):
    return config_pb2.CallableOptions(
        feed=[f"{scope}/{name}" for name in feeds], fetch=[f"{scope}/{name}" for name in fetches], **options
    )


def attempt(build, *arguments):
    with contextlib.suppress(tf.errors.OpError):
        build()(*arguments)


def run(scope, target="", pruned=False):
    config = v1.ConfigProto(allow_soft_placement=SOFT)
    config.graph_options.place_pruned_graph = pruned
    with tf.Graph().as_default(), v1.Session(target, config=config) as session:
        x, y, v, w, a, b, c, d, e = model(scope)
        attempt(lambda: session.make_callable(v1.global_variables_initializer()))
        attempt(lambda: session.make_callable([e, b, w.op], feed_list=[x, y]), ONE, ONE)
        attempt(lambda: session.make_callable(v.initializer))
        attempt(lambda: session._make_callable_from_options(named(scope, ["y:0", "x:0"], ["d:0", "b:0"])), ONE, ONE)
        attempt(lambda: session._make_callable_from_options(named(scope, ["x:0"], ["a:0"], target=[c.op.name])), ONE)
        joined = named(scope, ["y:0"], ["d:0"])
        joined.tensor_connection.add(from_tensor=f"{scope}/v/read:0", to_tensor=f"{scope}/x:0")
        attempt(lambda: session._make_callable_from_options(joined), ONE)
        last = session.list_devices()[-1].name
        there = named(scope, ["d:0", "x:0"], ["c:0"], fetch_skip_sync=True)
        there.feed_devices[f"{scope}/x:0"] = there.fetch_devices[f"{scope}/c:0"] = last
        attempt(lambda: session._make_callable_from_options(there))
        with contextlib.suppress(tf.errors.OpError):
            handle = session.partial_run_setup([a, b, c, d, e.op], [x, y])
            session.partial_run(handle, [b, a], {x: ONE})
            session.partial_run(handle, [c], {y: ONE})
            session.partial_run(handle, [d])
        with contextlib.suppress(tf.errors.OpError):
            handle = session.partial_run_setup([b], [a])
            session.partial_run(handle, [b], {a: ONE})


run("whole")
run("pruned", pruned=True)
run("on_a_cluster", server.target)
